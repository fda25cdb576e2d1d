"""Masks that look positions up in arrays."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Shaped

from attnlab.ops.lookup import lookup
from attnlab.ops.mask.base import ArrayOrNumpy, Mask
from attnlab.ops.tree import pytree


def _kept(keep: ArrayOrNumpy, at: ArrayOrNumpy) -> Array:
    """Returns keep[at] as a boolean, False out of range.

    Numbers are converted first, because `~` of an integer array is not a logical negation.
    """
    return lookup(keep, at, False).astype(bool)


def _arrays(name: str, **values: object) -> None:
    """Raises ValueError for a value that is not an array."""
    for what, value in values.items():
        if not isinstance(value, (jax.Array, np.ndarray)):
            raise ValueError(f"{name}: {what} must be an array, got {type(value).__name__}; use numpy.array")


def _long_enough(name: str, **lengths: tuple[int, int]) -> None:
    """Raises ValueError for an array that has fewer rows than there are positions."""
    for what, (length, needed) in lengths.items():
        if length < needed:
            raise ValueError(f"{name}: expected {what} for {needed} positions, got {length}")


@pytree
@dataclass(frozen=True, eq=False)
class KeyPadding(Mask):
    """Allows the keys that a padding mask keeps: keep[j].

    Keys outside of the array are not allowed.

    Raises:
      ValueError: if `keep` is not an array.
    """

    keep: Shaped[ArrayOrNumpy, " S"]
    """Which keys are tokens [S]; False or 0 is padding."""
    keys_only = True

    def __post_init__(self):
        _arrays("KeyPadding", keep=self.keep)

    def __call__(self, i, j):
        """keep[j]."""
        return jnp.broadcast_to(_kept(self.keep, j)[None, :], (i.shape[0], j.shape[0]))

    def check_shape(self, T, S):
        """Checks that there is one row per key."""
        _long_enough("KeyPadding", keep=(self.keep.shape[0], S))


@pytree
@dataclass(frozen=True, eq=False)
class QueryPadding(Mask):
    """Allows the queries that a padding mask keeps: keep[i].

    The other queries see no key, so their output is zero. Queries outside of the array are not allowed.

    Raises:
      ValueError: if `keep` is not an array.
    """

    keep: Shaped[ArrayOrNumpy, " T"]
    """Which queries are tokens [T]; False or 0 is padding."""
    indexed = True

    def __post_init__(self):
        _arrays("QueryPadding", keep=self.keep)

    def __call__(self, i, j):
        """keep[i]."""
        return jnp.broadcast_to(_kept(self.keep, i)[:, None], (i.shape[0], j.shape[0]))

    def factors(self, i, j):
        """Returns (keep[i], all True)."""
        return _kept(self.keep, i), jnp.ones(j.shape, bool)

    def check_shape(self, T, S):
        """Checks that there is one row per query."""
        _long_enough("QueryPadding", keep=(self.keep.shape[0], T))


@pytree
@dataclass(frozen=True, eq=False)
class Segments(Mask):
    """Packed sequences: a query sees the keys of its own segment, query[i] = key[j].

    Positions outside of the arrays are not allowed.

    Raises:
      ValueError: if `query` or `key` is not an array.
    """

    query: Int[ArrayOrNumpy, " T"]
    """Segment of each query [T]."""
    key: Int[ArrayOrNumpy, " S"]
    """Segment of each key [S]."""
    indexed = True

    def __post_init__(self):
        _arrays("Segments", query=self.query, key=self.key)

    def __call__(self, i, j):
        """query[i] = key[j]."""
        query, key = lookup(self.query, i, -1), lookup(self.key, j, -1)
        row_valid = (i >= 0) & (i < self.query.shape[0])
        column_valid = (j >= 0) & (j < self.key.shape[0])
        return (query[:, None] == key[None, :]) & row_valid[:, None] & column_valid[None, :]

    def check_shape(self, T, S):
        """Checks that there is one row per query and one row per key."""
        _long_enough("Segments", query=(self.query.shape[0], T), key=(self.key.shape[0], S))


@pytree
@dataclass(frozen=True, eq=False)
class Edges(Mask):
    """A graph given by its adjacency matrix: query i sees key j if adjacency[i, j] is True or nonzero.

    Positions outside of the matrix are not allowed.

    Raises:
      ValueError: if `adjacency` is not an array of two axes.
    """

    adjacency: Shaped[ArrayOrNumpy, "N M"]
    """The matrix [N M]: one row per query, one column per key."""
    indexed = True

    def __post_init__(self):
        _arrays("Edges", adjacency=self.adjacency)
        if len(shape := self.adjacency.shape) != 2:
            raise ValueError(
                f"Edges: expected adjacency [N M], one row per query and one column per key, got shape {shape}"
            )

    def __call__(self, i, j):
        """adjacency[i, j]."""
        N, M = self.adjacency.shape
        row_valid, column_valid = (i >= 0) & (i < N), (j >= 0) & (j < M)
        at, to = jnp.where(row_valid, i, 0), jnp.where(column_valid, j, 0)
        # Nonzero numbers are edges. They become booleans here, because ~ of an integer is not a logical negation.
        edges = jnp.asarray(self.adjacency).astype(bool)[at[:, None], to[None, :]]
        return edges & row_valid[:, None] & column_valid[None, :]

    def check_shape(self, T, S):
        """Checks that there is one row per query and one column per key."""
        _long_enough("Edges", adjacency=(self.adjacency.shape[0], T), columns=(self.adjacency.shape[1], S))
