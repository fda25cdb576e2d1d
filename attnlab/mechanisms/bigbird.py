"""BigBird: a window, global tokens and random blocks."""

from dataclasses import dataclass, field
from typing import final

from attnlab.mechanisms.pattern_softmax import PatternSoftmax
from attnlab.ops.mask import Global, RandomBlocks, Window


@final
@dataclass(frozen=True)
class BigBird(PatternSoftmax):
    """Softmax attention over a window, the first tokens and random blocks (BigBird).

    y_t = softmax(score(q_t, k)) v

    A query at t sees the keys j with −right < t−j < left, or t < first, or j < first, and those in joined blocks of
    `size` tokens. Every block picks `picks` earlier blocks at random, and is joined with them in both directions. The
    random choice depends only on `seed`.

    The authors' code differs in three ways. Its window consists of the blocks next to the query's own, here of tokens
    around the query. Its global tokens are the first and the last block, here only the first `first` tokens, because no
    form that decodes knows the last. It picks among all blocks, three in its base model.

    Time is O(T·(left+right+first+2·picks·size)) if positions are known while tracing. By blocks, forward-mode
    derivatives are not supported.

    Source: Zaheer et al. 2020, section 2.
    """

    left: int = 64
    """Number of keys up to and including the query's own position."""
    right: int = 64
    """Number of keys from the query's own position on. A causal mask removes the later ones."""
    first: int = 1
    """Number of global tokens, at the start. They see all tokens, and all tokens see them."""
    picks: int = 2
    """Number of earlier blocks that each block picks."""
    size: int = 64
    """Number of tokens per random block."""
    seed: int = 0
    """Seed of the random choice."""
    block: int | None = field(default=64, kw_only=True)
    """Number of queries and of keys per block of the computation, or None to compute all pairs."""

    @property
    def pattern(self):
        """The window, the global tokens and the random blocks."""
        return Window(self.left, self.right) | Global(self.first) | RandomBlocks(self.picks, self.size, self.seed)

    def _pairs(self, T, S):
        near = self.left + self.right - 1 + self.first + 2 * self.picks * self.size
        return T * min(S, near) + min(T, self.first) * S
