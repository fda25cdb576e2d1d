"""Which keys a block of queries meets, and in what panels: facts of masks and positions, known while tracing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from attnlab.ops.blockwise.vmap_groups import max_over_vmap
from attnlab.ops.mask import Full, Mask, Places
from attnlab.ops.times import times
from attnlab.ops.tree import pytree, static

# Keys of a panel at most: it is held whole, times a block of queries.
WIDEST = 4096
# Panels to be compiled at most, over all kinds of rows; beyond it, blocks are met in a loop. So they are where more
# than a few kinds of rows each meet several panels: unrolled, scattered ones take minutes to compile.
MOST, FEW = 64, 3
NOWHERE = 2**30


@pytree
@dataclass(frozen=True, eq=False)
class Rule:
    """A mask, with the positions of queries and keys at which it is asked. Of several rules, all must allow a pair."""

    mask: Mask
    i: Int[Places, " T"]
    j: Int[Places, " S"]

    def over(self, here: slice, there: slice) -> bool | None:
        """What is known while tracing of those queries and keys: all may meet, none, or neither is known."""
        if isinstance(self.mask, Full):
            return True
        if not (isinstance(self.i, np.ndarray) and isinstance(self.j, np.ndarray)):
            return None
        i, j = self.i[here], self.j[there]
        return self.mask.over(int(i.min()), int(i.max()) + 1, int(j.min()), int(j.max()) + 1)


@pytree
@dataclass(frozen=True, eq=False)
class PanelSchedule:
    """Each block of queries meets a few panels of neighbouring keys; blocks with panels alike share their code.

    `kinds` holds for each kind the (width, asked) of its panels, `which` the kind of every block, and `starts` where
    its panels begin. `asked`: whether the rules must be.
    """

    which: Int[Places, " A"]
    starts: Int[Places, "A N"]
    kinds: tuple[tuple[tuple[int, bool], ...], ...] = static()

    @property
    def width(self) -> int:
        """Keys that a block of queries meets at most."""
        return max(sum(width for width, _ in kind) for kind in self.kinds)

    def sweep(self, a: Any, step: Callable, carry: Any) -> Any:
        """`step(carry, start, width, asked)` for every panel that query block `a` meets."""
        starts = jnp.asarray(self.starts)[a]

        def branch(kind):
            def meet(carry):
                for n, (width, asked) in enumerate(kind):
                    carry = step(carry, starts[n], width, asked)
                return carry

            return meet

        branches = [branch(kind) for kind in self.kinds]
        if len(branches) == 1:
            return branches[0](carry)
        with times([int(np.sum(self.which == n)) for n in range(len(branches))], len(self.which)):
            return jax.lax.switch(jnp.asarray(self.which)[a], branches, carry)


@pytree
@dataclass(frozen=True, eq=False)
class BlockVisits:
    """The key blocks that query block a meets: the first counts[a] of blocks[a]. May be traced.

    Where counts are, `usual` says roughly how many to expect, and the rules are asked.
    """

    blocks: Int[Places, "A N"]
    counts: Int[Places, " A"]
    usual: int = static(default=1)

    @property
    def mean(self) -> tuple[list[int], int]:
        """How many a block of queries meets on average, as a fraction, of which `attnlab.ops.times` is told."""
        known = isinstance(self.counts, np.ndarray)
        return ([int(self.counts.sum())], len(self.counts)) if known else ([self.usual], 1)


@pytree
@dataclass(frozen=True, eq=False)
class LoopSchedule:
    """Each block of queries meets blocks of `size` keys one after another, in any order and number.

    `whole` are those all of whose pairs may meet, `part` those in which the rules must be asked.
    """

    whole: BlockVisits
    part: BlockVisits
    size: int = static()

    @property
    def width(self) -> int:
        """Keys that a block of queries meets at a time."""
        return self.size

    def sweep(self, a: Any, step: Callable, carry: Any) -> Any:
        """`step(carry, start, width, asked)` for every block that query block `a` meets.

        Under `jax.vmap` all examples take as many rounds, in the last of which some stand `NOWHERE`, where no key is:
        were each to stop by itself, all that is summed up would be copied in every round.
        """
        for visits, asked in ((self.whole, False), (self.part, True)):
            if visits.blocks.shape[1]:
                blocks, count = jnp.asarray(visits.blocks)[a], jnp.asarray(visits.counts)[a]
                rounds = max_over_vmap(count)

                def meet(n, carry, blocks=blocks, count=count, asked=asked):
                    start = blocks[n] * self.size
                    return step(carry, jnp.where(n < count, start, NOWHERE) if asked else start, self.size, asked)

                with times(*visits.mean):
                    carry = jax.lax.fori_loop(0, rounds, meet, carry)
        return carry


def plan_blocks(rules: Sequence[Rule], T: int, S: int, rows: int, columns: int) -> PanelSchedule | LoopSchedule:
    """The way of every block of `rows` queries through the keys, in blocks of `columns`."""
    met = [list(_met(rules, slice(a, min(a + rows, T)), 0, S, columns)) for a in range(0, T, rows)]
    panels = [list(_panels(row, max(1, WIDEST // columns))) for row in met]
    rowwise = [tuple((count * columns, asked) for _, count, asked in row) for row in panels]
    kinds = tuple(dict.fromkeys(rowwise))
    count = sum(map(len, kinds))
    if count > MOST or (len(kinds) > FEW and count > 2 * len(kinds)):
        return LoopSchedule(_visits(met, False), _visits(met, True), columns)
    which = np.array([kinds.index(kind) for kind in rowwise], np.int32)
    return PanelSchedule(which, _table([[b * columns for b, _, _ in row] for row in panels]), kinds)


def _met(rules, here, start, stop, columns) -> Iterator[tuple[int, bool]]:
    """(block, asked) for the keys start … stop−1 that may be met: halved until something is known of all."""
    said = [rule.over(here, slice(start, stop)) for rule in rules]
    if False in said:
        return
    count = -(-(stop - start) // columns)
    if None in said and count > 1:
        half = start + count // 2 * columns
        yield from _met(rules, here, start, half, columns)
        yield from _met(rules, here, half, stop, columns)
    else:
        for b in range(start, stop, columns):
            # A last block that is not full has keys to be left out.
            yield b // columns, None in said or b + columns > stop


def _panels(met, widest) -> Iterator[tuple[int, int, bool]]:
    """(first block, number of blocks, asked): neighbours of one sort together."""
    sort = lambda place: (place[0] - place[1][0], place[1][1])
    for _, run in groupby(enumerate(met), sort):
        blocks = [block for _, block in run]
        for n in range(0, len(blocks), widest):
            yield blocks[n][0], len(blocks[n : n + widest]), blocks[n][1]


def _visits(met, asked: bool) -> BlockVisits:
    chosen = [[b for b, asks in row if asks is asked] for row in met]
    return BlockVisits(_table(chosen), np.array([len(row) for row in chosen], np.int32))


def _table(rows: list[list[int]]) -> np.ndarray:
    table = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table
