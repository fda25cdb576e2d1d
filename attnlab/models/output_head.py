"""What ends in scores of a vocabulary's symbols."""

from __future__ import annotations

from typing import Any

from flax import nnx
from jaxtyping import Array, Float, Int

from attnlab.modules.dense import Dense
from attnlab.modules.embed import Embed
from attnlab.ops.entropy import Entropy, cross_entropy
from attnlab.ops.precision import accumulation_dtype


class OutputHead(nnx.Module):
    """A network whose last step is a linear map from vectors to the scores of all symbols; one example.

    `hidden_with_maps(*inputs) -> (vectors [T D], looks)` is the network's own. Scores are made by `output`; where that
    is None, by the product with the vectors that `target` reads.
    """

    output: Dense | None
    target: Embed

    def look(self, *inputs: Any, **named: Any) -> tuple[Float[Array, "T vocabulary"], dict]:
        """The scores, in float32 at least, and what watched attentions saw."""
        x, looks = self.hidden_with_maps(*inputs, **named)
        return self.logits(x), looks

    def hidden_states(self, *inputs: Any, **named: Any) -> Float[Array, "T D"]:
        """What the scores are made of: what `token_loss` takes, of many examples at once."""
        return self.hidden_with_maps(*inputs, **named)[0]

    def hidden_with_maps(self, *inputs: Any, **named: Any) -> tuple[Float[Array, "T D"], dict]:
        """The vectors, and what watched attentions saw."""
        raise NotImplementedError

    def logits(self, x: Float[Array, "T D"]) -> Float[Array, "T vocabulary"]:
        """The scores of every symbol, in float32 at least."""
        scores = self.target.attend(x) if self.output is None else self.output(x)
        return scores.astype(accumulation_dtype(scores.dtype))

    def token_loss(
        self, x: Float[Array, "N D"], target: Int[Array, " N"], share: Float[Array, " N"], smoothing: float = 0.0
    ) -> Entropy:
        """`attnlab.ops.entropy.cross_entropy` of the vectors' scores, which are never held all at once."""
        if self.output is None:
            return cross_entropy(x, self.target.table[...].T, None, target, share, smoothing)
        b = self.output.b
        return cross_entropy(x, self.output.w[...], None if b is None else b[...], target, share, smoothing)
