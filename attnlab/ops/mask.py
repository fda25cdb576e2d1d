"""Masks: predicates of positions.

A mask answers, for query positions `i [T]` and key positions `j [S]`, which pairs may meet: `mask(i, j) -> bool [T S]`.
Masks compose by `&`, `|`, `~`, are pytrees (their arrays are traced), and become an array only for the block asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

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
        return jnp.broadcast_to(self(i[:1], j).any(), i.shape) if self.keys_only else self(i, j).any(axis=1)

    def columns(self, i: Int[Array, " T"], j: Int[Array, " S"]) -> Bool[Array, " S"]:
        """Which keys are seen by any query at all."""
        return self(i[:1], j)[0] if self.keys_only else self(i, j).any(axis=0)

    def __and__(self, other: Mask) -> Mask:
        return And(self, other)

    def __or__(self, other: Mask) -> Mask:
        return Or(self, other)

    def __invert__(self) -> Mask:
        return Not(self)


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
        if self.left < 1 or self.right < 1:
            raise ValueError(
                f"Window(left={self.left}, right={self.right}): each side counts the token itself, so at least 1"
            )

    def __call__(self, i, j):
        """−right < i−j < left."""
        distance = i[:, None] - j[None, :]
        return (-self.right < distance) & (distance < self.left)

    def span(self, i0, i1):
        """From the first query's left edge to the last one's right edge."""
        return i0 - self.left + 1, i1 - 1 + self.right


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Keys(Mask):
    """The first `count` keys, the rest being padding: j < count."""

    count: Int[Array, ""] | int
    keys_only = True

    def __call__(self, i, j):
        """j < count."""
        return _pairs(i, j, j[None, :] < self.count)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Prefix(Mask):
    """A prefix that all may see: j < count. Prefix attention is `Causal() | Prefix(n)`."""

    count: Int[Array, ""] | int
    keys_only = True

    def __call__(self, i, j):
        """j < count."""
        return _pairs(i, j, j[None, :] < self.count)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Kept(Mask):
    """The keys that a padding mask keeps, wherever they stand: keep[j]."""

    keep: Bool[Array, " S"]
    keys_only = True

    def __call__(self, i, j):
        """keep[j]."""
        return _pairs(i, j, self.keep[j][None, :])


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Segments(Mask):
    """Packed sequences: a query sees the keys of its own segment, query[i] = key[j]."""

    query: Int[Array, " T"]
    key: Int[Array, " S"]
    indexed = True

    def __call__(self, i, j):
        """query[i] = key[j]."""
        return self.query[i][:, None] == self.key[j][None, :]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Edges(Mask):
    """A graph: query i sees key j where adjacency[i, j]."""

    adjacency: Bool[Array, "N M"]
    indexed = True

    def __call__(self, i, j):
        """adjacency[i, j]."""
        return self.adjacency[i[:, None], j[None, :]]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Dilated(Mask):
    """Every `step`-th key, counted from the query: (i−j) mod step = 0."""

    step: int = static()

    def __post_init__(self):
        if self.step < 1:
            raise ValueError(f"Dilated(step={self.step}): at least 1")

    def __call__(self, i, j):
        """(i−j) mod step = 0."""
        return (i[:, None] - j[None, :]) % self.step == 0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Global(Mask):
    """The first `tokens` positions see all and are seen by all: i < tokens or j < tokens."""

    tokens: int = static()

    def __call__(self, i, j):
        """I < tokens or j < tokens."""
        return (i[:, None] < self.tokens) | (j[None, :] < self.tokens)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class And(Mask):
    """Both."""

    one: Mask
    other: Mask

    @property
    def keys_only(self):
        """Whether both depend on j alone."""
        return self.one.keys_only and self.other.keys_only

    @property
    def indexed(self):
        """Whether either looks rows up."""
        return self.one.indexed or self.other.indexed

    def __call__(self, i, j):
        """Where both allow."""
        return self.one(i, j) & self.other(i, j)

    def span(self, i0, i1):
        """Where the spans meet."""
        (a0, a1), (b0, b1) = self.one.span(i0, i1), self.other.span(i0, i1)
        return max(a0, b0), min(a1, b1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Or(Mask):
    """Either."""

    one: Mask
    other: Mask

    @property
    def keys_only(self):
        """Whether both depend on j alone."""
        return self.one.keys_only and self.other.keys_only

    @property
    def indexed(self):
        """Whether either looks rows up."""
        return self.one.indexed or self.other.indexed

    def __call__(self, i, j):
        """Where either allows."""
        return self.one(i, j) | self.other(i, j)

    def span(self, i0, i1):
        """What holds both spans."""
        (a0, a1), (b0, b1) = self.one.span(i0, i1), self.other.span(i0, i1)
        return min(a0, b0), max(a1, b1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
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

    def __call__(self, i, j):
        """Where the other forbids."""
        return ~self.one(i, j)
