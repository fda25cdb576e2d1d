"""The decoder-only Transformer: a language model (Radford et al. 2018) with any mechanism that can decode."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.models.config import StackConfig
from attnlab.models.decoder import Decoder, Decoding
from attnlab.models.shapes import Shape, TokenShape, check_shape
from attnlab.ops.layer import split_keys


@dataclass(frozen=True)
class Language(StackConfig):
    """Configuration of a decoder-only language model: a stack of causal layers over one sequence.

    The fields are those of `StackConfig`. `mechanism` must have a causal form.

    GPT-2 (Radford et al. 2019) is `activation="gelu_tanh"`, `position=Learned(length, std=0.02)`,
    `initialiser="gaussian"`, `tied=True` and `scale_embeddings=False`. Its output has no bias, and neither has a tied
    output. Two initial values differ: GPT-2 divides those of the last map of each sublayer by √(2 `layers`), and its
    published code has a deviation of 0.01 for positions.
    """

    norm_eps: float = 1e-5
    """The ε that the norms add to the variance, at least 1e-37 and below 1."""

    def create(self, key: PRNGKeyArray, shape: Shape) -> LanguageNetwork:
        """Create a network for sequences of `shape` (`attnlab.tasks.Tokens`)."""
        shape = check_shape(self, shape, TokenShape)
        return LanguageNetwork(key, self, shape.vocabulary, shape.length)


class LanguageNetwork(Decoder):
    """The network of a `Language`, for one example.

    A call returns the logits of every next token of a sequence. `start` and `step` decode token by token.
    """

    def __call__(
        self, tokens: Int[Array, " T"], keep: Bool[Array, " T"] | None = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, "T vocabulary"]:
        """Return the logits of every next token.

        Args:
            tokens: Token ids.
            keep: False marks padding. Positions count padding, so it belongs after the sequence. None means no padding.
            key: Key for dropout. None means no dropout.

        Returns:
            Logits, at least float32.
        """
        return self.outputs_and_maps(tokens, keep, key)[0]

    def hidden_states(self, tokens, keep=None, key=None) -> tuple[Float[Array, "T D"], dict]:
        """Return the hidden states before the output map, and the maps {"decoder": [L H T T] or None} if observed."""
        return self.teacher_forced(tokens, keep, None, split_keys(key, 2))

    def start(self, length: int) -> Decoding:
        """Return the state before the first token, with room for `length` tokens."""
        return self.begin(length)
