"""Parameters packed into few arrays. The optimiser then compiles and runs a few operations instead of some per array.

A Transformer has fifty arrays, most of them small. Compiling Adam, clipping and the tests for finite numbers for each
one takes as long as compiling the loss and its gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

ROW = 128  # numbers in a row of a table. An array that does not fill its last row is padded with zeros
LARGEST = 2**16  # numbers in the largest array that is copied into a table


@dataclass(frozen=True)
class Packing:
    """How the arrays of a tree are packed: small arrays of one dtype share a table, large arrays stay as they are.

    Each row of a table `[R, 128]` belongs to one array.

    Args:
        like: A tree of arrays, or of their shapes. Trees with this structure can be packed.
    """

    like: PyTree

    @cached_property
    def _leaves(self) -> list[Array]:
        return jax.tree.leaves(self.like)

    @cached_property
    def _groups(self) -> list[list[int]]:
        """The indices of the arrays in each packed array."""
        tables: dict[np.dtype, list[int]] = {}
        alone = []
        for n, leaf in enumerate(self._leaves):
            if leaf.size > LARGEST:
                alone.append([n])
            else:
                tables.setdefault(leaf.dtype, []).append(n)
        return [*tables.values(), *alone]

    def _is_table(self, group: list[int]) -> bool:
        return self._leaves[group[0]].size <= LARGEST

    def _rows(self, n: int) -> int:
        """The number of rows of array n in its table."""
        return -(-self._leaves[n].size // ROW)

    def pack(self, tree: PyTree) -> list[Array]:
        """Returns the packed arrays of a tree: a table `[R, 128]` for each dtype, then the large arrays."""
        leaves = jax.tree.leaves(tree)
        return [self._table(leaves, group) if self._is_table(group) else leaves[group[0]] for group in self._groups]

    def _table(self, leaves: list[Array], group: list[int]) -> Array:
        parts = []
        for n in group:
            parts.append(leaves[n].ravel())
            if missing := self._rows(n) * ROW - leaves[n].size:
                parts.append(jnp.zeros(missing, leaves[n].dtype))
        # Without the barrier, XLA compiles the concatenation into each operation that reads the table.
        return jax.lax.optimization_barrier(jnp.concatenate(parts)).reshape(-1, ROW)

    def unpack(self, packed: list[Array]) -> PyTree:
        """Returns the tree of packed arrays."""
        leaves: list[Array | None] = [None] * len(self._leaves)
        for group, array in zip(self._groups, packed, strict=True):
            if not self._is_table(group):
                leaves[group[0]] = array
                continue
            numbers, start = jax.lax.optimization_barrier(array).ravel(), 0
            for n in group:
                leaf = self._leaves[n]
                leaves[n] = numbers[start : start + leaf.size].reshape(leaf.shape)
                start += self._rows(n) * ROW
        return jax.tree.unflatten(jax.tree.structure(self.like), leaves)

    def spread(self, each: Sequence[float], dtype: jnp.dtype | None = None) -> list[np.ndarray]:
        """Returns one number for each array of the tree, in a form that broadcasts against the packed arrays.

        Args:
            each: The numbers, in the order of the tree's leaves.
            dtype: The dtype of the result. None is that of the packed arrays.
        """
        found = []
        for group in self._groups:
            numbers = np.asarray([each[n] for n in group])
            rows = np.repeat(numbers, [self._rows(n) for n in group])[:, None]
            kind = dtype or self._leaves[group[0]].dtype
            found.append((rows if self._is_table(group) else numbers[0]).astype(kind))
        return found

    def squares(self, packed: list[Array]) -> Float[Array, " n"]:
        """Returns the sum of squares of each array of the tree, in the order of its leaves."""
        order = np.argsort([n for group in self._groups for n in group])
        sums = [self._sums(group, array) for group, array in zip(self._groups, packed, strict=True)]
        return jnp.concatenate(sums)[order]

    def _sums(self, group: list[int], array: Array) -> Float[Array, " n"]:
        squares = jnp.square(jnp.abs(array))
        if not self._is_table(group):
            return jnp.sum(squares)[None]
        ids = np.repeat(np.arange(len(group)), [self._rows(n) for n in group])
        return jax.ops.segment_sum(jnp.sum(squares, axis=1), ids, len(group), indices_are_sorted=True)
