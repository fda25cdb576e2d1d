"""A block of successive tokens, with their positions, segments and padding."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from attnlab.ops.linear import Visibility
from attnlab.ops.mask import ArrayOrNumpy, Causal, KeyPadding, Mask, QueryPadding, Segments
from attnlab.ops.split import split_chunks
from attnlab.ops.tree import pytree, static


@pytree
@dataclass(frozen=True)
class TokenBlock:
    """T new tokens: their padding, positions and segments.

    A run is a sequence of successive tokens with equal segment ids. A token sees only tokens of its own run. The result
    of `cut` has a leading axis of N blocks.
    """

    keep: Bool[ArrayOrNumpy, "*N T"]
    """False for padding."""
    i: Int[ArrayOrNumpy, "*N T"]
    """Position of each token. Values at padding are arbitrary."""
    run: Int[ArrayOrNumpy, "*N T"]
    """Number of the run that each token belongs to."""
    before: Int[ArrayOrNumpy, "*N"]
    """Number of the run that the state was in before the block."""
    plain: bool = static(default=False)
    """True if all tokens are kept and continue the run of the state.

    The field is static, so that masks of such blocks need no computation.
    """

    @property
    def mask(self) -> Mask:
        """Mask of the block by order 0 … T−1: a token sees no later token, no other run and no padding."""
        if self.plain:
            return Causal()
        return Causal() & Segments(self.run, self.run) & KeyPadding(self.keep) & QueryPadding(self.keep)

    @property
    def pairs(self) -> Bool[Array, "T T"]:
        """`mask` as an array of all pairs."""
        order = jnp.arange(self.keep.shape[0], dtype=jnp.int32)
        return dense_mask(self.mask, order, order)

    @property
    def positions(self) -> Int[ArrayOrNumpy, " T"]:
        """Position of each token, and 0 for padding, whose own value may even be negative."""
        return self.i if self.plain else jnp.where(self.keep, self.i, 0)

    @property
    def state_visible(self) -> Bool[ArrayOrNumpy, " T"]:
        """Tokens that see the state: those before the first change of segment."""
        return np.ones(self.keep.shape, bool) if self.plain else self.keep & (self.run == self.before)

    @property
    def enters_state(self) -> Bool[ArrayOrNumpy, " T"]:
        """Tokens that the next block can see: those of the last run."""
        return np.ones(self.keep.shape, bool) if self.plain else self.keep & (self.run == self.run[-1])

    @property
    def state_survives(self) -> Bool[ArrayOrNumpy, ""]:
        """Whether the old state remains part of the new one, that is, whether no segment begins in the block."""
        return np.array(True) if self.plain else self.run[-1] == self.before

    @property
    def visibility(self) -> Visibility:
        """Which tokens see each other and the state, and which enter it."""
        return Visibility(self.pairs, self.state_visible, self.enters_state, self.state_survives)

    def cut(self, size: int) -> TokenBlock:
        """Splits the block into blocks of `size` tokens, stacked along a new leading axis. The last one is padded."""
        run = split_chunks(self.run, size, mode="edge")
        xp = np if isinstance(run, np.ndarray) else jnp
        before = xp.concatenate([self.before[None], run[:-1, -1]])
        return TokenBlock(split_chunks(self.keep, size), split_chunks(self.i, size), run, before, self.plain)


def dense_mask(mask: Mask, i: Int[ArrayOrNumpy, " T"], j: Int[ArrayOrNumpy, " S"]) -> Bool[Array, "T S"]:
    """Returns the mask as an array of all pairs.

    The array is computed at run time. As a constant it would be stored in the compiled program.

    Args:
      mask: which query may see which key.
      i: positions of the queries [T].
      j: positions of the keys [S].

    Returns:
      A boolean array [T S], True where the query may see the key.
    """
    return jnp.asarray(mask(jnp.asarray(i), jnp.asarray(j)))
