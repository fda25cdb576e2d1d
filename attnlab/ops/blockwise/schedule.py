"""Which keys a block of queries attends to, and in what panels.

It is derived from masks and positions at trace time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from attnlab.ops.blockwise.vmap_groups import max_over_vmap
from attnlab.ops.mask import ArrayOrNumpy, Full, Mask
from attnlab.ops.tree import pytree, static
from attnlab.ops.trip_counts import annotate_trip_counts

# Largest number of keys of a panel. The scores of a block of queries with a whole panel are held at once.
WIDEST = 4096
# Largest number of panels that are compiled, over all kinds of query blocks. With more panels, blocks are visited in a
# loop. A loop is also used if there are more than `FEW` kinds with more than two panels each on average: unrolled, such
# scattered panels take minutes to compile.
MOST, FEW = 64, 3
# The start of a key block beyond all keys: every pair in it is masked out.
NOWHERE = 2**30


@pytree
@dataclass(frozen=True, eq=False)
class PositionedMask:
    """A mask with the positions of queries and keys at which it is evaluated.

    If there are several of them, a pair must be allowed by all.
    """

    mask: Mask
    """The mask."""
    i: Int[ArrayOrNumpy, " T"]
    """Positions of the queries [T]."""
    j: Int[ArrayOrNumpy, " S"]
    """Positions of the keys [S]."""

    def over(self, here: slice, there: slice) -> bool | None:
        """Returns what is known at trace time about all pairs of the queries `here` and the keys `there`.

        Returns:
          True if all pairs are allowed, False if none is, None if this is not known.
        """
        if isinstance(self.mask, Full):
            return True
        if not (isinstance(self.i, np.ndarray) and isinstance(self.j, np.ndarray)):
            return None
        i, j = self.i[here], self.j[there]
        return self.mask.over(int(i.min()), int(i.max()) + 1, int(j.min()), int(j.max()) + 1)


@pytree
@dataclass(frozen=True, eq=False)
class PanelSchedule:
    """Each block of queries attends to a few panels of neighbouring keys.

    Blocks with equal panels share compiled code.
    """

    kind_of_block: Int[ArrayOrNumpy, " A"]
    """Kind of each block of queries [A]."""
    starts: Int[ArrayOrNumpy, "A N"]
    """First key of each panel of each block [A N]."""
    kinds: tuple[tuple[tuple[int, bool], ...], ...] = static()
    """For each kind, the (width, needs_mask) of its panels; `needs_mask` says whether the masks must be evaluated."""

    @property
    def width(self) -> int:
        """Largest number of keys that a block of queries attends to."""
        return max(sum(width for width, _ in kind) for kind in self.kinds)

    def sweep(self, a: Int[Array, ""], step: Callable, carry: PyTree) -> PyTree:
        """Runs `step(carry, start, width, needs_mask) -> carry` for every panel that query block `a` attends to."""
        starts = jnp.asarray(self.starts)[a]

        def branch(kind):
            def visit(carry):
                for n, (width, needs_mask) in enumerate(kind):
                    carry = step(carry, starts[n], width, needs_mask)
                return carry

            return visit

        branches = [branch(kind) for kind in self.kinds]
        if len(branches) == 1:
            return branches[0](carry)
        with annotate_trip_counts(
            [int(np.sum(self.kind_of_block == n)) for n in range(len(branches))], len(self.kind_of_block)
        ):
            return jax.lax.switch(jnp.asarray(self.kind_of_block)[a], branches, carry)


@pytree
@dataclass(frozen=True, eq=False)
class BlockVisits:
    """The key blocks that each query block a attends to: the first counts[a] of blocks[a]. The arrays may be traced."""

    blocks: Int[ArrayOrNumpy, "A N"]
    """Indices of key blocks [A N]."""
    counts: Int[ArrayOrNumpy, " A"]
    """How many of them each query block attends to [A]."""
    expected_count: int = static(default=1)
    """Roughly how many blocks to expect, if `counts` is traced. Used for cost estimates."""

    @property
    def mean(self) -> tuple[list[int], int]:
        """The mean number of key blocks per query block, as arguments of `annotate_trip_counts`."""
        known = isinstance(self.counts, np.ndarray)
        return ([int(self.counts.sum())], len(self.counts)) if known else ([self.expected_count], 1)


@pytree
@dataclass(frozen=True, eq=False)
class LoopSchedule:
    """Each block of queries attends to blocks of `size` keys in a loop, in any order and number."""

    unmasked: BlockVisits
    """The blocks in which all pairs are allowed."""
    masked: BlockVisits
    """The blocks in which the masks must be evaluated."""
    size: int = static()
    """Keys per block."""

    @property
    def width(self) -> int:
        """Number of keys that a block of queries attends to at a time."""
        return self.size

    def sweep(self, a: Int[Array, ""], step: Callable, carry: PyTree) -> PyTree:
        """Runs `step(carry, start, width, needs_mask) -> carry` for every key block that query block `a` attends to.

        Under `jax.vmap` all examples take the same number of rounds. An example that is done gets the start `NOWHERE`,
        where there are no keys. If each example stopped by itself, the whole carry would be copied in every round.
        """
        for visits, needs_mask in ((self.unmasked, False), (self.masked, True)):
            if visits.blocks.shape[1]:
                blocks, count = jnp.asarray(visits.blocks)[a], jnp.asarray(visits.counts)[a]
                rounds = max_over_vmap(count)

                def visit(n, carry, blocks=blocks, count=count, needs_mask=needs_mask):
                    start = blocks[n] * self.size
                    return step(
                        carry, jnp.where(n < count, start, NOWHERE) if needs_mask else start, self.size, needs_mask
                    )

                with annotate_trip_counts(*visits.mean):
                    carry = jax.lax.fori_loop(0, rounds, visit, carry)
        return carry


def plan_blocks(
    masks: Sequence[PositionedMask], T: int, S: int, rows: int, columns: int
) -> PanelSchedule | LoopSchedule:
    """Plans which keys each block of queries attends to.

    Args:
      masks: masks with their positions.
      T: number of queries.
      S: number of keys.
      rows: queries per block.
      columns: keys per block.

    Returns:
      A `PanelSchedule` if there are few distinct panels, else a `LoopSchedule`.
    """
    visits = [list(_visited(masks, slice(a, min(a + rows, T)), 0, S, columns)) for a in range(0, T, rows)]
    panels = [list(_panels(row, max(1, WIDEST // columns))) for row in visits]
    rowwise = [tuple((count * columns, needs_mask) for _, count, needs_mask in row) for row in panels]
    kinds = tuple(dict.fromkeys(rowwise))
    count = sum(map(len, kinds))
    if count > MOST or (len(kinds) > FEW and count > 2 * len(kinds)):
        return LoopSchedule(_block_visits(visits, False), _block_visits(visits, True), columns)
    kind_of_block = np.array([kinds.index(kind) for kind in rowwise], np.int32)
    return PanelSchedule(kind_of_block, _table([[b * columns for b, _, _ in row] for row in panels]), kinds)


def _visited(masks, here, start, stop, columns) -> Iterator[tuple[int, bool]]:
    """Yields (block, needs_mask) for the blocks of keys start … stop−1 that may hold an allowed pair.

    The range is halved until the masks know something about all of it.
    """
    said = [mask.over(here, slice(start, stop)) for mask in masks]
    if False in said:
        return
    count = -(-(stop - start) // columns)
    if None in said and count > 1:
        half = start + count // 2 * columns
        yield from _visited(masks, here, start, half, columns)
        yield from _visited(masks, here, half, stop, columns)
    else:
        for b in range(start, stop, columns):
            # The last block may be padded. Then the padding must be masked out, even if all pairs are allowed.
            yield b // columns, None in said or b + columns > stop


def _panels(visits, widest) -> Iterator[tuple[int, int, bool]]:
    """Yields (first block, number of blocks, needs_mask), joining neighbours with the same `needs_mask`."""
    sort = lambda place: (place[0] - place[1][0], place[1][1])
    for _, run in groupby(enumerate(visits), sort):
        blocks = [block for _, block in run]
        for n in range(0, len(blocks), widest):
            yield blocks[n][0], len(blocks[n : n + widest]), blocks[n][1]


def _block_visits(visits, needs_mask: bool) -> BlockVisits:
    """Returns the visits of all query blocks, for the key blocks with or without masks to evaluate."""
    chosen = [[b for b, needs in row if needs is needs_mask] for row in visits]
    return BlockVisits(_table(chosen), np.array([len(row) for row in chosen], np.int32))


def _table(rows: list[list[int]]) -> np.ndarray:
    """Stacks rows of different lengths, padded with zeros."""
    table = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table
