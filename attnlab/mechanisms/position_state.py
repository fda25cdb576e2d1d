"""Where the tokens of a block stand: their positions, their segments, and which of them count.

Padding takes no position: a token's position is the number of kept tokens before it in its segment, so that left
padding, right padding and packing change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from attnlab.ops.chunks import split_chunks
from attnlab.ops.mask import Causal, KeyPadding, Mask, Places, QueryPadding, Segments
from attnlab.ops.tree import pytree, static


@pytree
@dataclass(frozen=True)
class PositionState:
    """What a state knows of time: the next token's position, the segment it is in, and how many segments began."""

    position: Int[Array, ""]
    segment: Int[Array, ""]
    run: Int[Array, ""]

    @classmethod
    def start(cls) -> PositionState:
        """Before the first token."""
        return cls(*(jnp.zeros((), jnp.int32) for _ in range(3)))


@pytree
@dataclass(frozen=True)
class TokenBlock:
    """T new tokens: which are kept, where each stands, and which run of equal segments it belongs to.

    `before` is the run that the state was in. `plain` says that all are kept and of one run with the state: known
    while tracing, so that masks of theirs cost nothing.
    """

    keep: Bool[Places, " T"]
    i: Int[Places, " T"]
    run: Int[Places, " T"]
    before: Int[Places, ""]
    plain: bool = static(default=False)

    @property
    def mask(self) -> Mask:
        """Which tokens see which, by their order 0 … T−1: no later one, none of another run, no padding."""
        if self.plain:
            return Causal()
        return Causal() & Segments(self.run, self.run) & KeyPadding(self.keep) & QueryPadding(self.keep)

    @property
    def pairs(self) -> Bool[Array, "T T"]:
        """`mask`, for every pair."""
        order = jnp.arange(self.keep.shape[0], dtype=jnp.int32)
        return dense_mask(self.mask, order, order)

    @property
    def positions(self) -> Int[Places, " T"]:
        """Where each token stands; 0 for padding, which may stand anywhere, before the first position even."""
        return self.i if self.plain else jnp.where(self.keep, self.i, 0)

    @property
    def state_visible(self) -> Bool[Places, " T"]:
        """Which tokens see the state: those before the first change of segment."""
        return np.ones(self.keep.shape, bool) if self.plain else self.keep & (self.run == self.before)

    @property
    def enters_state(self) -> Bool[Places, " T"]:
        """Which tokens the next block may see: those of the last run."""
        return np.ones(self.keep.shape, bool) if self.plain else self.keep & (self.run == self.run[-1])

    @property
    def state_survives(self) -> Bool[Places, ""]:
        """Whether the state lives on: no segment began."""
        return np.array(True) if self.plain else self.run[-1] == self.before

    def cut(self, size: int) -> TokenBlock:
        """Blocks of `size` tokens one after the other, along a leading axis; the last is filled up with padding."""
        run = split_chunks(self.run, size, mode="edge")
        xp = np if isinstance(run, np.ndarray) else jnp
        before = xp.concatenate([self.before[None], run[:-1, -1]])
        return TokenBlock(split_chunks(self.keep, size), split_chunks(self.i, size), run, before, self.plain)


def dense_mask(mask: Mask, i: Int[Places, " T"], j: Int[Places, " S"]) -> Bool[Array, "T S"]:
    """The mask as an array of all pairs: computed when it is run, for a program is no place to keep one."""
    return jnp.asarray(mask(jnp.asarray(i), jnp.asarray(j)))


def initial_block(T: int, i, keep, segment) -> TokenBlock:
    """The block that a sequence from its beginning forms. What follows from the shapes is numpy's."""
    if keep is not None or segment is not None:
        return next_block(PositionState.start(), T, i, keep, segment)[0]
    i = np.arange(T, dtype=np.int32) if i is None else i.astype(np.int32)
    return TokenBlock(np.ones(T, bool), i, np.zeros(T, np.int32), np.zeros((), np.int32), plain=True)


def next_block(
    clock: PositionState,
    T: int,
    i: Int[Places, " T"] | None,
    keep: Bool[Array, " T"] | None,
    segment: Int[Array, " T"] | None,
) -> tuple[TokenBlock, PositionState]:
    """The block that T new tokens form after `clock`, and the clock after them.

    Positions count on from the clock unless `i` gives them. A change of `segment` between kept tokens begins a new
    run, which sees nothing of the old and counts from 0.
    """
    plain = keep is None and segment is None
    keep = jnp.ones(T, bool) if keep is None else keep
    count = jnp.cumsum(keep, dtype=jnp.int32)
    if segment is None:
        run, start, last = jnp.broadcast_to(clock.run, (T,)), 0, clock.segment
    else:
        # The segment of padding is that of the kept token before it, so that padding begins nothing.
        at = jax.lax.cummax(jnp.where(keep, jnp.arange(T, dtype=jnp.int32), -1))
        filled = jnp.where(at < 0, clock.segment, segment[jnp.maximum(at, 0)].astype(jnp.int32))
        changed = jnp.diff(filled, prepend=clock.segment[None]) != 0
        run, last = clock.run + jnp.cumsum(changed, dtype=jnp.int32), filled[-1]
        # How many kept tokens, of this block and of those before, do not belong to the run.
        start = jax.lax.cummax(jnp.where(changed, clock.position + count - keep.astype(jnp.int32), 0))
    counted = clock.position + count - start
    if i is None:
        block, after = TokenBlock(keep, counted - 1, run, clock.run, plain), counted[-1]
    else:
        block = TokenBlock(keep, i.astype(jnp.int32), run, clock.run, plain)
        after = jnp.where(keep.any(), jnp.max(jnp.where(block.enters_state, block.i, -1)) + 1, clock.position)
    return block, PositionState(after, last, run[-1])
