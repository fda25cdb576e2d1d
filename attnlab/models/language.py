"""The decoder-only Transformer: a language model (Radford et al. 2018), with any mechanism that decodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.models.config import StackConfig, check_shape
from attnlab.models.decoder import Decoder, Decoding


@dataclass(frozen=True)
class Language(StackConfig):
    """A language model of `layers` causal blocks, which reads and writes one sequence.

    The fields are those of `StackConfig`; `mechanism` is any that decodes. GPT-2 (Radford et al. 2019) is activation
    "gelu_tanh", position `Learned(length, std=0.02)`, initialiser "gaussian", `tied`, and not `scale_embeddings`; its
    output has no bias, which `tied` leaves out.
    """

    norm_eps: float = 1e-5

    def watched(self, watch) -> Language:
        """The same with the mechanism put through `watch`."""
        return replace(self, mechanism=watch(self.mechanism))

    def create(self, key: PRNGKeyArray, shape: Any) -> LanguageNetwork:
        """A new network for sequences of that shape (`attnlab.tasks.Tokens`)."""
        check_shape(self, shape, "vocabulary", "length")
        return LanguageNetwork(key, self, shape.vocabulary, shape.length)


class LanguageNetwork(Decoder):
    """The network of a `Language`; one example.

    Calling it scores every next token of a sequence; `start` and `step` write token after token.
    """

    def __call__(
        self, tokens: Int[Array, " T"], keep: Bool[Array, " T"] | None = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, "T vocabulary"]:
        """Scores of every next token, in float32 at least; `keep` False is padding, None: there is none."""
        return self.look(tokens, keep, key)[0]

    def hidden_with_maps(self, tokens, keep=None, key=None) -> tuple[Float[Array, "T D"], dict]:
        """What the scores are made of, and what watched attentions saw: {"decoder": [L H T T] or None}."""
        return self.teacher_forced(tokens, keep, None, (None, None) if key is None else jax.random.split(key))

    def start(self, length: int) -> Decoding:
        """The state before the first token, with room for `length` of them."""
        return self.begin(length)
