"""What a mask is, and how masks compose."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from attnlab.ops.tree import pytree

# Positions that are known while tracing are numpy's; what was given is jax's.
Places = Array | np.ndarray
BLOCK = 512


class Mask:
    """Which query may see which key.

    `keys_only`: whether it depends on j alone. `indexed`: whether it looks rows up in an array by i, so that
    queries and keys of different number must say where they stand. Both are static.
    """

    keys_only = False
    indexed = False

    def __call__(self, i: Int[Places, " T"], j: Int[Places, " S"]) -> Bool[Places, "T S"]:
        """Whether query i may see key j, for every pair."""
        raise NotImplementedError

    def over(self, i0: int, i1: int, j0: int, j1: int) -> bool | None:
        """Whether all (True) or none (False) of the pairs i0 ≤ i < i1, j0 ≤ j < j1 may meet; None: not known.

        Told from static facts, for blocks that are not empty: loops by blocks skip those where nothing may meet.
        """
        return None

    def factors(self, i: Int[Places, " T"], j: Int[Places, " S"]) -> tuple[Places, Places] | None:
        """Two vectors, rows [T] and columns [S], whose outer product the mask is; None where it is no such product."""
        return (np.ones(i.shape, bool), self(np.zeros(1, np.int32), j)[0]) if self.keys_only else None

    def reachable(self, i: Int[Places, " T"], j: Int[Places, " S"]) -> tuple[Places, Places]:
        """Which queries see any key, [T], and which keys any query sees, [S]: block by block where pairs are many."""
        if (factors := self.factors(i, j)) is not None:
            rows, columns = factors
            return rows & columns.any(), columns & rows.any()
        if (
            isinstance(i, np.ndarray)
            and isinstance(j, np.ndarray)
            and all(type(x) is int for x in jax.tree.leaves(self))
        ):
            return _known(self, i, j)
        if i.size * j.size <= BLOCK**2:
            pairs = jnp.asarray(self(i, j))
            return pairs.any(axis=1), pairs.any(axis=0)

        def step(columns, i):
            pairs = self(i, j)
            return columns | pairs.any(axis=0), pairs.any(axis=1)

        # The last block is filled up with the last query again, which changes nothing.
        queries = jnp.pad(i, (0, -i.size % BLOCK), mode="edge").reshape(-1, BLOCK)
        columns, rows = jax.lax.scan(step, jnp.zeros(j.shape, bool), queries)
        return rows.reshape(-1)[: i.size], columns

    def fit(self, T: int, S: int) -> None:
        """Raise ValueError where its arrays are too short for queries and keys at 0 … T−1 and 0 … S−1."""

    def __and__(self, other: Mask) -> Mask:
        return And(self, other) if isinstance(other, Mask) else NotImplemented

    def __or__(self, other: Mask) -> Mask:
        return Or(self, other) if isinstance(other, Mask) else NotImplemented

    def __invert__(self) -> Mask:
        return Not(self)


def _known(mask: Mask, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`Mask.reachable` of a formula at known positions, while tracing."""
    rows, columns = np.zeros(i.shape, bool), np.zeros(j.shape, bool)

    def pairs_of(I, J):
        # A formula may be written with jax's functions, whose values are known here too, but for a trace.
        with jax.ensure_compile_time_eval():
            return np.asarray(mask(I, J))

    for a in range(0, i.size, BLOCK):
        for b in range(0, j.size, BLOCK):
            I, J = i[a : a + BLOCK], j[b : b + BLOCK]
            said = mask.over(int(I.min()), int(I.max()) + 1, int(J.min()), int(J.max()) + 1)
            if said is not False:
                pairs = np.ones((I.size, J.size), bool) if said else pairs_of(I, J)
                rows[a : a + BLOCK] |= pairs.any(axis=1)
                columns[b : b + BLOCK] |= pairs.any(axis=0)
    return rows, columns


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


@pytree
@dataclass(frozen=True, eq=False)
class And(Both, Mask):
    """Both."""

    one: Mask
    other: Mask

    def __call__(self, i, j):
        """Where both allow."""
        return self.one(i, j) & self.other(i, j)

    def over(self, i0, i1, j0, j1):
        """All where both say all, none where either says none."""
        said = self.one.over(i0, i1, j0, j1), self.other.over(i0, i1, j0, j1)
        return False if False in said else True if said == (True, True) else None

    def factors(self, i, j):
        """The products of both's, where both have them."""
        one, other = self.one.factors(i, j), self.other.factors(i, j)
        return None if one is None or other is None else (one[0] & other[0], one[1] & other[1])


@pytree
@dataclass(frozen=True, eq=False)
class Or(Both, Mask):
    """Either."""

    one: Mask
    other: Mask

    def __call__(self, i, j):
        """Where either allows."""
        return self.one(i, j) | self.other(i, j)

    def over(self, i0, i1, j0, j1):
        """All where either says all, none where both say none."""
        said = self.one.over(i0, i1, j0, j1), self.other.over(i0, i1, j0, j1)
        return True if True in said else False if said == (False, False) else None


@pytree
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

    def __call__(self, i, j):
        """Where the other forbids."""
        return ~self.one(i, j)

    def over(self, i0, i1, j0, j1):
        """The opposite, where it is known."""
        said = self.one.over(i0, i1, j0, j1)
        return None if said is None else not said

    def fit(self, T, S):
        """As what it negates."""
        self.one.fit(T, S)
