"""Masks: predicates of positions.

A mask answers, for query positions `i [T]` and key positions `j [S]`, which pairs may meet: `mask(i, j) -> bool [T S]`.
Masks compose by `&`, `|`, `~`, are pytrees (their arrays are traced), and become an array only for the block asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Shaped

EVERYWHERE = (-math.inf, math.inf)


def static(**options):
    """A field that is a fact of the mask and not traced."""
    return field(metadata={"static": True}, **options)


class Mask:
    """Which query may see which key.

    `keys_only`: whether it depends on j alone. `indexed`: whether it looks rows up in an array by i, so that
    queries and keys of different number must say where they stand. Both are static.
    """

    keys_only = False
    indexed = False

    def __call__(self, i: Int[Array, " T"], j: Int[Array, " S"]) -> Bool[Array, "T S"]:
        """Whether query i may see key j, for every pair."""
        raise NotImplementedError

    def span(self, i0: int, i1: int) -> tuple[float, float]:
        """Bounds (j0, j1) such that queries i0 ≤ i < i1 see no key outside j0 ≤ j < j1; from static facts."""
        return EVERYWHERE

    def rows(self, i: Int[Array, " T"], j: Int[Array, " S"]) -> Bool[Array, " T"]:
        """Which queries see any key at all."""
        return jnp.broadcast_to(self.columns(i, j).any(), i.shape) if self.keys_only else self(i, j).any(axis=1)

    def columns(self, i: Int[Array, " T"], j: Int[Array, " S"]) -> Bool[Array, " S"]:
        """Which keys are seen by any query at all."""
        return self(jnp.zeros(1, jnp.int32), j)[0] if self.keys_only else self(i, j).any(axis=0)

    def fit(self, T: int, S: int) -> None:
        """Raise ValueError where its arrays are too short for queries and keys at 0 … T−1 and 0 … S−1."""

    def __and__(self, other: Mask) -> Mask:
        return And(self, other) if isinstance(other, Mask) else NotImplemented

    def __or__(self, other: Mask) -> Mask:
        return Or(self, other) if isinstance(other, Mask) else NotImplemented

    def __invert__(self) -> Mask:
        return Not(self)


def _lookup(array: Array, at: Array, missing: Any) -> Array:
    """array[at], and `missing` for what is out of range: jax itself would clamp, or count from the end."""
    return jnp.asarray(array).at[jnp.where(at < 0, array.shape[0], at)].get(mode="fill", fill_value=missing)


def _long_enough(name: str, **lengths: tuple[int, int]) -> None:
    for what, (length, wanted) in lengths.items():
        if length < wanted:
            raise ValueError(f"{name}: {what} has {length} rows for {wanted} positions")


def _pairs(i, j, seen) -> Bool[Array, "T S"]:
    return jnp.broadcast_to(seen, (i.shape[0], j.shape[0]))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Full(Mask):
    """Every query sees every key."""

    keys_only = True

    def __call__(self, i, j):
        """True everywhere."""
        return _pairs(i, j, jnp.array(True))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Causal(Mask):
    """No query sees a key behind itself: j ≤ i."""

    def __call__(self, i, j):
        """j ≤ i."""
        return j[None, :] <= i[:, None]

    def span(self, i0, i1):
        """Keys before the last query's end."""
        return -math.inf, i1


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Window(Mask):
    """A window around the query: −right < i−j < left. `Window(1, 1)` is the token itself."""

    left: int = static()
    right: int = static()

    def __post_init__(self):
        if not all(isinstance(side, int) and side >= 1 for side in (self.left, self.right)):
            raise ValueError(
                f"Window(left={self.left}, right={self.right}): whole numbers, at least 1 (the token itself)"
            )

    def __call__(self, i, j):
        """−right < i−j < left."""
        distance = i[:, None] - j[None, :]
        return (-self.right < distance) & (distance < self.left)

    def span(self, i0, i1):
        """From the first query's left edge to the last one's right edge."""
        return i0 - self.left + 1, i1 - 1 + self.right


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Keys(Mask):
    """The first `count` keys, the rest being padding: j < count."""

    count: Int[Array, ""] | int
    keys_only = True

    def __call__(self, i, j):
        """j < count."""
        return _pairs(i, j, j[None, :] < self.count)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Prefix(Mask):
    """A prefix that all may see: j < count. Prefix attention is `Causal() | Prefix(n)`."""

    count: Int[Array, ""] | int
    keys_only = True

    def __call__(self, i, j):
        """j < count."""
        return _pairs(i, j, j[None, :] < self.count)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Kept(Mask):
    """The keys that a padding mask keeps, wherever they stand: keep[j]."""

    keep: Bool[Array, " S"]
    keys_only = True

    def __call__(self, i, j):
        """keep[j]."""
        return _pairs(i, j, _lookup(self.keep, j, False)[None, :])

    def fit(self, T, S):
        """A row a key."""
        _long_enough("Kept", keep=(self.keep.shape[0], S))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Segments(Mask):
    """Packed sequences: a query sees the keys of its own segment, query[i] = key[j]."""

    query: Int[Array, " T"]
    key: Int[Array, " S"]
    indexed = True

    def __call__(self, i, j):
        """query[i] = key[j]."""
        query, key = _lookup(self.query, i, -1), _lookup(self.key, j, -1)
        inside = (i >= 0) & (i < self.query.shape[0])
        beside = (j >= 0) & (j < self.key.shape[0])
        return (query[:, None] == key[None, :]) & inside[:, None] & beside[None, :]

    def fit(self, T, S):
        """A row a query, and a row a key."""
        _long_enough("Segments", query=(self.query.shape[0], T), key=(self.key.shape[0], S))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Edges(Mask):
    """A graph: query i sees key j where adjacency[i, j]."""

    adjacency: Shaped[Array, "N M"]
    indexed = True

    def __call__(self, i, j):
        """adjacency[i, j]."""
        N, M = self.adjacency.shape
        inside, beside = (i >= 0) & (i < N), (j >= 0) & (j < M)
        # Numbers are edges where they are not zero: ~ of an integer is not a negation.
        edges = self.adjacency.astype(bool)[jnp.where(inside, i, 0)[:, None], jnp.where(beside, j, 0)[None, :]]
        return edges & inside[:, None] & beside[None, :]

    def fit(self, T, S):
        """A row a query, a column a key."""
        _long_enough("Edges", adjacency=(self.adjacency.shape[0], T), columns=(self.adjacency.shape[1], S))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Dilated(Mask):
    """Every `step`-th key, counted from the query: (i−j) mod step = 0."""

    step: int = static()

    def __post_init__(self):
        if not isinstance(self.step, int) or self.step < 1:
            raise ValueError(f"Dilated(step={self.step}): a whole number, at least 1")

    def __call__(self, i, j):
        """(i−j) mod step = 0."""
        return (i[:, None] - j[None, :]) % self.step == 0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Global(Mask):
    """The first `tokens` positions see all and are seen by all: i < tokens or j < tokens."""

    tokens: int = static()

    def __post_init__(self):
        if not isinstance(self.tokens, int) or self.tokens < 0:
            raise ValueError(f"Global(tokens={self.tokens}): a whole number, 0 or more")

    def __call__(self, i, j):
        """I < tokens or j < tokens."""
        return (i[:, None] < self.tokens) | (j[None, :] < self.tokens)


class Both:
    """What two masks together depend on: for `And` and `Or`."""

    one: Mask
    other: Mask

    @property
    def keys_only(self) -> bool:
        """Whether both depend on j alone."""
        return self.one.keys_only and self.other.keys_only

    @property
    def indexed(self) -> bool:
        """Whether either looks rows up."""
        return self.one.indexed or self.other.indexed

    def fit(self, T: int, S: int) -> None:
        """Both must."""
        self.one.fit(T, S)
        self.other.fit(T, S)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class And(Both, Mask):
    """Both."""

    one: Mask
    other: Mask

    def __call__(self, i, j):
        """Where both allow."""
        return self.one(i, j) & self.other(i, j)

    def span(self, i0, i1):
        """Where the spans meet."""
        (a0, a1), (b0, b1) = self.one.span(i0, i1), self.other.span(i0, i1)
        return max(a0, b0), min(a1, b1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Or(Both, Mask):
    """Either."""

    one: Mask
    other: Mask

    def __call__(self, i, j):
        """Where either allows."""
        return self.one(i, j) | self.other(i, j)

    def span(self, i0, i1):
        """What holds both spans."""
        (a0, a1), (b0, b1) = self.one.span(i0, i1), self.other.span(i0, i1)
        return min(a0, b0), max(a1, b1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Not(Mask):
    """The other pairs."""

    one: Mask

    @property
    def keys_only(self):
        """As what it negates."""
        return self.one.keys_only

    @property
    def indexed(self):
        """As what it negates."""
        return self.one.indexed

    def fit(self, T, S):
        """As what it negates."""
        self.one.fit(T, S)

    def __call__(self, i, j):
        """Where the other forbids."""
        return ~self.one(i, j)
