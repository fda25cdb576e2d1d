"""The output of networks that predict symbols: logits over a vocabulary, and the loss."""

from __future__ import annotations

from flax import nnx
from jaxtyping import Array, Float, Int

from attnlab.modules.dense import Dense
from attnlab.modules.embed import Embed
from attnlab.ops.entropy import Entropy, cross_entropy
from attnlab.ops.precision import accumulation_dtype


class OutputHead(nnx.Module):
    """A network whose last step is a linear map from hidden states to logits of all symbols, for one example.

    Subclasses implement `hidden_states`.
    """

    output: Dense | None
    """The output map. None: logits are products with the embedding table of `target`."""
    target: Embed
    """The embedding of the target symbols. Only used if `output` is None."""

    def outputs_and_maps(
        self, *inputs: Array | None, **named: Array | None
    ) -> tuple[Float[Array, "T vocabulary"], dict]:
        """Return the logits, at least float32, and the attention maps."""
        x, maps = self.hidden_states(*inputs, **named)
        return self.logits(x), maps

    def hidden_states(self, *inputs: Array | None, **named: Array | None) -> tuple[Float[Array, "T D"], dict]:
        """Return the hidden states before the output map, and the attention maps by role.

        `token_loss` takes the hidden states of many examples at once.
        """
        raise NotImplementedError

    def logits(self, x: Float[Array, "T D"]) -> Float[Array, "T vocabulary"]:
        """Map hidden states to logits of all symbols, at least float32."""
        scores = self.target.attend(x) if self.output is None else self.output(x)
        return scores.astype(accumulation_dtype(scores.dtype))

    def token_loss(
        self, x: Float[Array, "N D"], target: Int[Array, " N"], weights: Float[Array, " N"], smoothing: float = 0.0
    ) -> Entropy:
        """Compute `attnlab.ops.entropy.cross_entropy` from hidden states without holding all logits at once.

        Args:
            x: Hidden states of N positions.
            target: The target symbols.
            weights: The weight of each position in the loss.
            smoothing: Label smoothing.
        """
        if self.output is None:
            return cross_entropy(x, self.target.table[...].T, None, target, weights, smoothing)
        b = self.output.b
        return cross_entropy(x, self.output.w[...], None if b is None else b[...], target, weights, smoothing)
