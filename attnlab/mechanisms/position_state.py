"""Positions and segments from one block of tokens to the next.

Padding takes no position. The position of a token is the number of kept tokens before it in its segment. Left padding,
right padding and packing therefore do not change any result.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.token_block import TokenBlock
from attnlab.ops.tree import pytree


@pytree
@dataclass(frozen=True)
class PositionState:
    """Position part of a decoding state."""

    position: Int[Array, ""]
    """Position of the next token."""
    segment: Int[Array, ""]
    """Segment id of the last token, which continues unless the id changes."""
    run: Int[Array, ""]
    """Number of changes of segment so far. It numbers the current run of equal segment ids."""

    @classmethod
    def start(cls) -> PositionState:
        """Returns the state before the first token."""
        return cls(*(jnp.zeros((), jnp.int32) for _ in range(3)))


def initial_block(T: int, i, keep, segment) -> TokenBlock:
    """Returns the block of a whole sequence from its beginning. Values that follow from the shapes are numpy arrays.

    Args:
        T: number of tokens.
        i: positions of the tokens [T], or None to count kept tokens, from 0 in each segment.
        keep: False for padding [T], or None if there is none.
        segment: segment ids [T], or None for one segment.
    """
    if keep is not None or segment is not None:
        return next_block(PositionState.start(), T, i, keep, segment)[0]
    i = np.arange(T, dtype=np.int32) if i is None else i.astype(np.int32)
    return TokenBlock(np.ones(T, bool), i, np.zeros(T, np.int32), np.zeros((), np.int32), plain=True)


def next_block(
    position_state: PositionState,
    T: int,
    i: Int[ArrayOrNumpy, " T"] | None,
    keep: Bool[Array, " T"] | None,
    segment: Int[Array, " T"] | None,
) -> tuple[TokenBlock, PositionState]:
    """Returns the block of T new tokens after `position_state`, and the position state after them.

    A change of `segment` between kept tokens begins a new run. The run sees nothing of earlier ones and counts from 0.

    Args:
        position_state: position state before the block.
        T: number of new tokens.
        i: positions of the tokens [T], or None to continue from `position_state`.
        keep: False for padding [T], or None if there is none.
        segment: segment ids [T], or None to continue the current segment.
    """
    plain = keep is None and segment is None
    keep = jnp.ones(T, bool) if keep is None else keep
    count = jnp.cumsum(keep, dtype=jnp.int32)
    if segment is None:
        run, start, last = jnp.broadcast_to(position_state.run, (T,)), 0, position_state.segment
    else:
        # Padding takes the segment of the kept token before it, so that it does not begin a segment.
        at = jax.lax.cummax(jnp.where(keep, jnp.arange(T, dtype=jnp.int32), -1))
        filled = jnp.where(at < 0, position_state.segment, segment[jnp.maximum(at, 0)].astype(jnp.int32))
        changed = jnp.diff(filled, prepend=position_state.segment[None]) != 0
        run, last = position_state.run + jnp.cumsum(changed, dtype=jnp.int32), filled[-1]
        # Number of kept tokens, in this block and before, that precede the token's run.
        start = jax.lax.cummax(jnp.where(changed, position_state.position + count - keep.astype(jnp.int32), 0))
    counted = position_state.position + count - start
    if i is None:
        block, after = TokenBlock(keep, counted - 1, run, position_state.run, plain), counted[-1]
    else:
        block = TokenBlock(keep, i.astype(jnp.int32), run, position_state.run, plain)
        after = jnp.where(keep.any(), jnp.max(jnp.where(block.enters_state, block.i, -1)) + 1, position_state.position)
    return block, PositionState(after, last, run[-1])
