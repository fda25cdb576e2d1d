"""Window, global tokens and random blocks together."""

from dataclasses import dataclass, field

from attnlab.mechanisms.softmax import Softmax
from attnlab.ops.mask import Global, RandomBlocks, Window


@dataclass(frozen=True)
class BigBird(Softmax):
    """y_t = softmax(score(q_t, k)) v over a window, the first tokens, and blocks picked at random (Zaheer et al. 2020).

    −right < t−j < left, or t < first, or j < first, or the blocks of `size` tokens around t and j chose each other:
    every block picks `picks` of those before it, by `seed` alone (section 2). The authors' code differs in three: its
    window is the blocks left and right of the query's own, ours so many tokens around the query; its global tokens are
    the first block and the last, ours the first `first` tokens alone (no form that decodes knows the last); it picks
    among all blocks, three in its base model. Time O(T·(left+right+first+2·picks·size))
    where positions are known while tracing. By blocks it has no forward-mode derivatives.
    """

    left: int = 64
    right: int = 64
    first: int = 1
    picks: int = 2
    size: int = 64
    seed: int = 0
    block: int | None = field(default=64, kw_only=True)

    @property
    def pattern(self):
        """The window, the global tokens, and the blocks."""
        return Window(self.left, self.right) | Global(self.first) | RandomBlocks(self.picks, self.size, self.seed)

    def _pairs(self, T, S):
        near = self.left + self.right - 1 + self.first + 2 * self.picks * self.size
        return T * min(S, near) + min(T, self.first) * S
