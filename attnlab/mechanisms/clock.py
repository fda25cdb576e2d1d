"""Where the tokens of a block stand: their positions, their segments, and which of them count.

Padding takes no position: a token's position is the number of kept tokens before it in its segment, so that left
padding, right padding and packing change nothing.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Clock:
    """What a state knows of time: the next token's position, the segment it is in, and how many segments began."""

    position: Int[Array, ""]
    segment: Int[Array, ""]
    run: Int[Array, ""]

    @classmethod
    def start(cls) -> "Clock":
        """Before the first token."""
        return cls(*(jnp.zeros((), jnp.int32) for _ in range(3)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Block:
    """T new tokens: which are kept, where each stands, and which run of equal segments it belongs to.

    `before` is the run that the state was in.
    """

    keep: Bool[Array, " T"]
    i: Int[Array, " T"]
    run: Int[Array, " T"]
    before: Int[Array, ""]

    @property
    def pairs(self) -> Bool[Array, "T T"]:
        """Which tokens see which: no later one, none of another run, no padding on either side."""
        order = jnp.arange(self.keep.shape[0], dtype=jnp.int32)
        causal = order[None, :] <= order[:, None]
        same = self.run[:, None] == self.run[None, :]
        return causal & same & self.keep[None, :] & self.keep[:, None]

    @property
    def sees(self) -> Bool[Array, " T"]:
        """Which tokens see the state: those before the first change of segment."""
        return self.keep & (self.run == self.before)

    @property
    def stays(self) -> Bool[Array, " T"]:
        """Which tokens the next block may see: those of the last run."""
        return self.keep & (self.run == self.run[-1])

    @property
    def carries(self) -> Bool[Array, ""]:
        """Whether the state lives on: no segment began."""
        return self.run[-1] == self.before


def place(
    clock: Clock,
    T: int,
    i: Int[Array, " T"] | None,
    keep: Bool[Array, " T"] | None,
    segment: Int[Array, " T"] | None,
) -> tuple[Block, Clock]:
    """The block that T new tokens form after `clock`, and the clock after them.

    Positions count on from the clock unless `i` gives them. A change of `segment` between kept tokens begins a new
    run, which sees nothing of the old and counts from 0.
    """
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
        block, after = Block(keep, counted - 1, run, clock.run), counted[-1]
    else:
        block = Block(keep, i.astype(jnp.int32), run, clock.run)
        after = jnp.where(keep.any(), jnp.max(jnp.where(block.stays, block.i, -1)) + 1, clock.position)
    return block, Clock(after, last, run[-1])
