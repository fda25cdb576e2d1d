"""A convolutional language model: stacked causal 1-D convolutions (van den Oord et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.mechanisms import Mechanism
from attnlab.mechanisms.inputs import zero_where_padded
from attnlab.models.config import DTYPES, check_dropout, check_names, check_norm_eps, check_shape, check_sizes
from attnlab.models.output_head import OutputHead
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.norm import LayerNorm
from attnlab.ops.layer import dropout


@dataclass(frozen=True)
class ConvolutionalLanguage:
    """A language model of `layers` causal convolutions of `kernel` tokens each, without attention.

    Layer n sees every growth^n-th token: `growth` 1 is plain convolutions, 2 the dilated ones of ByteNet and WaveNet.
    So a token sees `receptive_field` of them, itself among these, and nothing before. Each layer is
    x + relu(window W_1 + b_1) W_2 + b_2 of a hidden width `feedforward` (None: twice the width), its norm first. It is
    called, trained and decoded as `language` is. `scale_embeddings` reads embeddings times √width, as Transformers do;
    `dtype` is what it computes in, parameters are float32.

    Raises ValueError naming the field for what cannot work.
    """

    width: int = 64
    layers: int = 2
    kernel: int = 3
    growth: int = 1
    feedforward: int | None = None
    dropout: float = 0.0
    norm_eps: float = 1e-5
    scale_embeddings: bool = True
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"
    missing_values: ClassVar = {"norm_eps": 1e-6}

    def __post_init__(self):
        check_sizes(self, "width", "layers", "kernel", "growth", "feedforward")
        check_names(self, dtype=DTYPES)
        check_dropout(self)
        check_norm_eps(self)
        if self.receptive_field > 2**24:
            raise ValueError(
                f"model.growth={self.growth} and model.layers={self.layers} would see {self.receptive_field:,} tokens"
            )

    @property
    def receptive_field(self) -> int:
        """How many tokens, itself among them, a token sees."""
        return 1 + (self.kernel - 1) * sum(self.growth**n for n in range(self.layers))

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """None."""
        return {}

    def watched(self, watch) -> ConvolutionalLanguage:
        """The same: there is nothing to watch."""
        return self

    def create(self, key: PRNGKeyArray, shape: Any) -> ConvolutionalLanguageNetwork:
        """A new network for sequences of that shape (`attnlab.tasks.Tokens`)."""
        check_shape(self, shape, "vocabulary", "length")
        return ConvolutionalLanguageNetwork(key, self, shape.vocabulary)


class CausalConvolution(nnx.Module):
    """x + relu(window W_1 + b_1) W_2 + b_2; a token's window is itself and `kernel` − 1 before, `dilation` apart."""

    def __init__(self, key: PRNGKeyArray, config: ConvolutionalLanguage, dilation: int):
        hidden = config.feedforward or 2 * config.width
        self.kernel, self.dilation, self.rate = config.kernel, dilation, config.dropout
        self.norm = LayerNorm(config.width, config.norm_eps)
        self.inner = Dense(fold_key(key, "inner"), config.kernel * config.width, hidden)
        self.outer = Dense(fold_key(key, "outer"), hidden, config.width)

    def start(self, width: int, dtype) -> Float[Array, "P D"]:
        """What stands before the first token: zeros, as many as a window reaches back."""
        return jnp.zeros(((self.kernel - 1) * self.dilation, width), dtype)

    def extend(
        self,
        x: Float[Array, "T D"],
        past: Float[Array, "P D"],
        keep: Bool[Array, " T"] | None,
        key: PRNGKeyArray | None,
    ) -> tuple[Float[Array, "T D"], Float[Array, "P D"]]:
        """New tokens, given those before; padding is to others as if nothing stood there."""
        line = jnp.concatenate([past, zero_where_padded(keep, self.norm(x))])
        # One product of all windows side by side: a convolution whose weights are vmapped is far slower.
        window = jnp.concatenate([line[n * self.dilation :][: x.shape[0]] for n in range(self.kernel)], axis=1)
        y = self.outer(jax.nn.relu(self.inner(window)))
        return x + dropout(y, self.rate, key), line[x.shape[0] :]


class ConvolutionalLanguageNetwork(OutputHead):
    """The network of a `ConvolutionalLanguage`; one example."""

    def __init__(self, key: PRNGKeyArray, config: ConvolutionalLanguage, vocabulary: int):
        self.config = config
        self.embed = Embed(fold_key(key, "embed"), vocabulary, config.width, config.scale_embeddings)
        self.layers = nnx.List(
            CausalConvolution(fold_key(key, f"layer {n}"), config, config.growth**n) for n in range(config.layers)
        )
        self.norm = LayerNorm(config.width, config.norm_eps)
        self.output = Dense(fold_key(key, "output"), config.width, vocabulary)

    def __call__(
        self, tokens: Int[Array, " T"], keep: Bool[Array, " T"] | None = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, "T vocabulary"]:
        """Scores of every next token, in float32 at least; `keep` False is padding, None: there is none."""
        return self.look(tokens, keep, key)[0]

    def hidden_with_maps(self, tokens, keep=None, key=None) -> tuple[Float[Array, "T D"], dict]:
        """What the scores are made of; there is no attention to be seen."""
        return self._extend(self.start(len(tokens)), tokens, keep, key)[0], {}

    def start(self, length: int) -> Any:
        """The state before the first token, for any `length`: what each layer's windows reach back to."""
        return tuple(layer.start(self.config.width, self.dtype) for layer in self.layers)

    def step(self, state: Any, token: Int[Array, ""]) -> tuple[Float[Array, " vocabulary"], Any]:
        """Scores of the token after `token`, and the state with it."""
        x, state = self._extend(state, token[None], None, None)
        return self.logits(x)[0], state

    @property
    def dtype(self) -> Any:
        """What it computes in."""
        return jnp.dtype(self.config.dtype)

    def _extend(self, state, tokens, keep, key):
        """What each of some new tokens is followed by, as vectors, and the state with them."""
        keys = [None] * (len(self.layers) + 1) if key is None else jax.random.split(key, len(self.layers) + 1)
        x, new = dropout(self.embed(tokens, self.dtype), self.config.dropout, keys[0]), []
        for layer, past, own in zip(self.layers, state, keys[1:], strict=True):
            x, past = layer.extend(x, past, keep, own)
            new.append(past)
        return self.norm(x), tuple(new)
