"""Masks that look positions up in arrays."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int, Shaped

from attnlab.ops.lookup import lookup
from attnlab.ops.mask.base import Mask, Places
from attnlab.ops.tree import pytree


def _kept(keep: Places, at: Places) -> Array:
    """keep[at]; numbers keep where they are not zero: ~ of an integer is not a negation."""
    return lookup(keep, at, False).astype(bool)


def _arrays(name: str, **values: Any) -> None:
    for what, value in values.items():
        if not hasattr(value, "shape"):
            raise ValueError(f"{name}: {what} must be an array, not {type(value).__name__}; numpy.array makes one")


def _long_enough(name: str, **lengths: tuple[int, int]) -> None:
    for what, (length, wanted) in lengths.items():
        if length < wanted:
            raise ValueError(f"{name}: {what} has {length} rows for {wanted} positions")


@pytree
@dataclass(frozen=True, eq=False)
class KeyPadding(Mask):
    """The keys that a padding mask keeps, wherever they stand: keep[j]."""

    keep: Shaped[Places, " S"]
    keys_only = True

    def __post_init__(self):
        _arrays("KeyPadding", keep=self.keep)

    def __call__(self, i, j):
        """keep[j]."""
        return jnp.broadcast_to(_kept(self.keep, j)[None, :], (i.shape[0], j.shape[0]))

    def fit(self, T, S):
        """A row a key."""
        _long_enough("KeyPadding", keep=(self.keep.shape[0], S))


@pytree
@dataclass(frozen=True, eq=False)
class QueryPadding(Mask):
    """The queries that a padding mask keeps: keep[i]. The others see nothing, and answer zero."""

    keep: Shaped[Places, " T"]
    indexed = True

    def __post_init__(self):
        _arrays("QueryPadding", keep=self.keep)

    def __call__(self, i, j):
        """keep[i]."""
        return jnp.broadcast_to(_kept(self.keep, i)[:, None], (i.shape[0], j.shape[0]))

    def factors(self, i, j):
        """keep[i], and every key."""
        return _kept(self.keep, i), jnp.ones(j.shape, bool)

    def fit(self, T, S):
        """A row a query."""
        _long_enough("QueryPadding", keep=(self.keep.shape[0], T))


@pytree
@dataclass(frozen=True, eq=False)
class Segments(Mask):
    """Packed sequences: a query sees the keys of its own segment, query[i] = key[j]."""

    query: Int[Places, " T"]
    key: Int[Places, " S"]
    indexed = True

    def __post_init__(self):
        _arrays("Segments", query=self.query, key=self.key)

    def __call__(self, i, j):
        """query[i] = key[j]."""
        query, key = lookup(self.query, i, -1), lookup(self.key, j, -1)
        inside = (i >= 0) & (i < self.query.shape[0])
        beside = (j >= 0) & (j < self.key.shape[0])
        return (query[:, None] == key[None, :]) & inside[:, None] & beside[None, :]

    def fit(self, T, S):
        """A row a query, and a row a key."""
        _long_enough("Segments", query=(self.query.shape[0], T), key=(self.key.shape[0], S))


@pytree
@dataclass(frozen=True, eq=False)
class Edges(Mask):
    """A graph: query i sees key j where adjacency[i, j]."""

    adjacency: Shaped[Places, "N M"]
    indexed = True

    def __post_init__(self):
        _arrays("Edges", adjacency=self.adjacency)
        if len(shape := self.adjacency.shape) != 2:
            raise ValueError(f"Edges: adjacency {shape} is not [N M], a row a query and a column a key")

    def __call__(self, i, j):
        """adjacency[i, j]."""
        N, M = self.adjacency.shape
        inside, beside = (i >= 0) & (i < N), (j >= 0) & (j < M)
        at, to = jnp.where(inside, i, 0), jnp.where(beside, j, 0)
        # Numbers are edges where they are not zero: ~ of an integer is not a negation.
        edges = jnp.asarray(self.adjacency).astype(bool)[at[:, None], to[None, :]]
        return edges & inside[:, None] & beside[None, :]

    def fit(self, T, S):
        """A row a query, a column a key."""
        _long_enough("Edges", adjacency=(self.adjacency.shape[0], T), columns=(self.adjacency.shape[1], S))
