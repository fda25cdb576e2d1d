"""The base class of masks, and the composition of masks."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, is_dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from attnlab.documented import Documented
from attnlab.ops.tree import pytree
from attnlab.ops.varying import varying_like

# A numpy array is known at trace time; a jax array may be traced.
ArrayOrNumpy = Array | np.ndarray
# Rows and columns of the blocks in which `Mask.reachable` evaluates a mask.
BLOCK = 512


class Mask(metaclass=Documented):
    """A predicate that says which query may attend to which key.

    Subclasses implement `__call__`. They may override `over`, `factors` and `reachable` to save work.

    Attributes:
      keys_only: static; whether the mask depends on j only.
      indexed: static; whether the mask uses i as an index into an array. If the numbers of queries and keys differ,
        such a mask needs explicit positions.
    """

    keys_only = False
    indexed = False

    def __call__(self, i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]) -> Bool[ArrayOrNumpy, "T S"]:
        """Evaluates the mask for every pair.

        Args:
          i: query positions [T].
          j: key positions [S].

        Returns:
          A boolean array [T S]; True if query i may attend to key j.
        """
        raise NotImplementedError

    def over(self, i0: int, i1: int, j0: int, j1: int) -> bool | None:
        """Whether the mask has one value on a whole block of pairs: True, False, or None.

        None means that the value varies, or that it is not known at trace time. Blockwise loops use this to skip blocks
        in which no pair is allowed. The ranges must not be empty.

        Args:
          i0: first query position of the block.
          i1: end of the query positions, exclusive: i0 ≤ i < i1.
          j0: first key position of the block.
          j1: end of the key positions, exclusive: j0 ≤ j < j1.

        Returns:
          True if all pairs are allowed, False if none is, None if it varies or is not known at trace time.
        """
        return None

    def factors(
        self, i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]
    ) -> tuple[ArrayOrNumpy, ArrayOrNumpy] | None:
        """Returns the mask as an outer product of two vectors, if it is one.

        Args:
          i: query positions [T].
          j: key positions [S].

        Returns:
          Boolean vectors (rows [T], columns [S]) whose outer product is the mask, or None if the mask has no such form.
        """
        return (np.ones(i.shape, bool), self(np.zeros(1, np.int32), j)[0]) if self.keys_only else None

    def reachable(self, i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]) -> tuple[ArrayOrNumpy, ArrayOrNumpy]:
        """Returns which queries see any key, and which keys are seen by any query.

        If there are more than `BLOCK`² pairs, the mask is evaluated block by block, so that [T S] is never held.

        Args:
          i: query positions [T].
          j: key positions [S].

        Returns:
          Boolean vectors (rows [T], columns [S]).
        """
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

        # Pad the last block by repeating the last query: its keys are already counted, and the extra rows are cut off.
        queries = jnp.pad(i, (0, -i.size % BLOCK), mode="edge").reshape(-1, BLOCK)
        columns, rows = jax.lax.scan(step, varying_like(jnp.zeros(j.shape, bool), (self, queries, j)), queries)
        return rows.reshape(-1)[: i.size], columns

    def check_shape(self, T: int, S: int) -> None:
        """Checks the mask's arrays against queries at 0 … T−1 and keys at 0 … S−1.

        Raises:
          ValueError: if an array is too short for these positions.
        """

    def __and__(self, other: Mask) -> Mask:
        """Returns a mask of the pairs that both masks allow."""
        return And(self, _mask(other))

    def __or__(self, other: Mask) -> Mask:
        """Returns a mask of the pairs that either mask allows."""
        return Or(self, _mask(other))

    def __rand__(self, other: object) -> Mask:
        """Raises TypeError, because the left operand is not a mask."""
        return And(_mask(other), self)

    def __ror__(self, other: object) -> Mask:
        """Raises TypeError, because the left operand is not a mask."""
        return Or(_mask(other), self)

    def __invert__(self) -> Mask:
        """Returns a mask of the pairs that this mask forbids."""
        return Not(self)


def not_a_mask(mask: object) -> str:
    """Returns why an object is not a mask, and what to write instead."""
    if isinstance(mask, type) and issubclass(mask, Mask):
        needed = [field.name for field in fields(mask) if field.default is MISSING] if is_dataclass(mask) else []
        return f"expected a mask, got the class {mask.__name__}: write {mask.__name__}({', '.join(needed)})"
    if isinstance(mask, (jax.Array, np.ndarray)):
        kind = "KeyPadding" if len(mask.shape) == 1 else "Edges"
        return f"expected a mask, got an array of shape {tuple(mask.shape)}: write {kind}(array)"
    return f"expected a mask, for example Causal() or KeyPadding(keep), got {type(mask).__name__}"


def _mask(other: object) -> Mask:
    if not isinstance(other, Mask):
        raise TypeError(not_a_mask(other))
    return other


def _known(mask: Mask, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Computes `Mask.reachable` at trace time, for a mask without arrays at known positions."""
    rows, columns = np.zeros(i.shape, bool), np.zeros(j.shape, bool)

    def pairs_of(I, J):
        """Evaluates the mask as a numpy array."""
        # A mask may use jnp functions. Under a trace, these would return tracers even for known positions.
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
    """The properties that `And` and `Or` derive from their two operands."""

    one: Mask
    """The first operand."""
    other: Mask
    """The second operand."""

    @property
    def keys_only(self) -> bool:
        """Whether both operands depend on j only."""
        return self.one.keys_only and self.other.keys_only

    @property
    def indexed(self) -> bool:
        """Whether either operand is indexed by i."""
        return self.one.indexed or self.other.indexed

    def check_shape(self, T: int, S: int) -> None:
        """Checks both operands."""
        self.one.check_shape(T, S)
        self.other.check_shape(T, S)


@pytree
@dataclass(frozen=True, eq=False)
class And(Both, Mask):
    """Allows the pairs that both operands allow."""

    one: Mask
    """The first operand."""
    other: Mask
    """The second operand."""

    def __call__(self, i, j):
        """Evaluates both operands and joins them by "and"."""
        return self.one(i, j) & self.other(i, j)

    def over(self, i0, i1, j0, j1):
        """True if both operands are True, False if either is False, else None."""
        said = self.one.over(i0, i1, j0, j1), self.other.over(i0, i1, j0, j1)
        return False if False in said else True if said == (True, True) else None

    def factors(self, i, j):
        """Returns the products of the operands' factors, or None if either has no factors."""
        one, other = self.one.factors(i, j), self.other.factors(i, j)
        return None if one is None or other is None else (one[0] & other[0], one[1] & other[1])


@pytree
@dataclass(frozen=True, eq=False)
class Or(Both, Mask):
    """Allows the pairs that either operand allows."""

    one: Mask
    """The first operand."""
    other: Mask
    """The second operand."""

    def __call__(self, i, j):
        """Evaluates both operands and joins them by "or"."""
        return self.one(i, j) | self.other(i, j)

    def over(self, i0, i1, j0, j1):
        """True if either operand is True, False if both are False, else None."""
        said = self.one.over(i0, i1, j0, j1), self.other.over(i0, i1, j0, j1)
        return True if True in said else False if said == (False, False) else None


@pytree
@dataclass(frozen=True, eq=False)
class Not(Mask):
    """Allows the pairs that the operand forbids."""

    one: Mask
    """The operand."""

    @property
    def keys_only(self):
        """Whether the operand depends on j only."""
        return self.one.keys_only

    @property
    def indexed(self):
        """Whether the operand is indexed by i."""
        return self.one.indexed

    def __call__(self, i, j):
        """Evaluates the operand and negates it."""
        return ~self.one(i, j)

    def over(self, i0, i1, j0, j1):
        """The negation of the operand's value; None if that is not known."""
        said = self.one.over(i0, i1, j0, j1)
        return None if said is None else not said

    def check_shape(self, T, S):
        """Checks the operand."""
        self.one.check_shape(T, S)
