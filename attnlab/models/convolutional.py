"""A convolutional language model: stacked causal 1-D convolutions (van den Oord et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism
from attnlab.mechanisms.inputs import zero_where_padded
from attnlab.models.checks import DTYPES, check_dropout, check_names, check_norm_eps, check_sizes
from attnlab.models.output_head import OutputHead
from attnlab.models.shapes import Shape, TokenShape, check_shape
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.norm import LayerNorm
from attnlab.ops.layer import dropout, split_keys


@dataclass(frozen=True)
class ConvolutionalLanguage(metaclass=Documented):
    """Configuration of a language model of causal convolutions, without attention.

    Each layer is x + relu(window(norm(x)) W_1 + b_1) W_2 + b_2. A token sees the last `receptive_field` tokens, itself
    included. The model is called, trained and decoded like `Language`.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    width: int = 64
    """Size of the vectors."""
    layers: int = 2
    """Number of layers."""
    kernel: int = 3
    """Number of tokens in a window."""
    growth: int = 1
    """Base of the dilation: layer n has growth^n. 1: no dilation. 2: the dilations of ByteNet and WaveNet."""
    feedforward: int | None = None
    """Width of the hidden layer. None: 2 · `width`."""
    dropout: float = 0.0
    """Dropout probability, applied to embeddings and to the output of each layer."""
    norm_eps: float = 1e-5
    """The ε that the norms add to the variance, at least 1e-37 and below 1."""
    scale_embeddings: bool = True
    """True: multiply embeddings by √width, as Transformers do."""
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"
    """Data type of the computation. Parameters are always float32."""
    missing_values: ClassVar = {"norm_eps": 1e-6}
    """Values of fields that are missing in configurations of older versions."""

    def __post_init__(self):
        check_sizes(
            width=self.width, layers=self.layers, kernel=self.kernel, growth=self.growth, feedforward=self.feedforward
        )
        check_names(dtype=(self.dtype, DTYPES))
        check_dropout(self.dropout)
        check_norm_eps(self.norm_eps)
        if self.receptive_field > 2**24:
            raise ValueError(
                f"model.growth={self.growth} with model.layers={self.layers} gives a receptive field of "
                f"{self.receptive_field:,} tokens, which must be at most {2**24:,}"
            )

    @property
    def receptive_field(self) -> int:
        """Number of tokens that a token sees, itself included."""
        return 1 + (self.kernel - 1) * sum(self.growth**n for n in range(self.layers))

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """Empty: the model has no attention."""
        return {}

    def create(self, key: PRNGKeyArray, shape: Shape) -> ConvolutionalLanguageNetwork:
        """Create a network for sequences of `shape` (`attnlab.tasks.Tokens`)."""
        shape = check_shape(self, shape, TokenShape)
        return ConvolutionalLanguageNetwork(key, self, shape.vocabulary)


class ResidualCausalConvolution(nnx.Module):
    """A residual causal convolution, x + relu(window(norm(x)) W_1 + b_1) W_2 + b_2.

    The window of a token is itself and `kernel` − 1 earlier tokens at multiples of the distance `dilation`.
    """

    def __init__(self, key: PRNGKeyArray, config: ConvolutionalLanguage, dilation: int):
        hidden = config.feedforward or 2 * config.width
        self.kernel, self.dilation, self.rate = config.kernel, dilation, config.dropout
        self.norm = LayerNorm(config.width, config.norm_eps)
        self.inner = Dense(fold_key(key, "inner"), config.kernel * config.width, hidden)
        self.outer = Dense(fold_key(key, "outer"), hidden, config.width)

    def start(self, width: int, dtype) -> Float[Array, "P D"]:
        """Return the state before the first token: P = (kernel − 1) · dilation zero vectors."""
        return jnp.zeros(((self.kernel - 1) * self.dilation, width), dtype)

    def extend(
        self,
        x: Float[Array, "T D"],
        past: Float[Array, "P D"],
        keep: Bool[Array, " T"] | None,
        key: PRNGKeyArray | None,
    ) -> tuple[Float[Array, "T D"], Float[Array, "P D"]]:
        """Apply the layer to new tokens. Padding counts as zeros in the windows of other tokens.

        Args:
            x: The new tokens.
            past: The last P normalised tokens before them.
            keep: False marks padding. None means no padding.
            key: Key for dropout. None means no dropout.

        Returns:
            The output of the new tokens, and the new `past`.
        """
        line = jnp.concatenate([past, zero_where_padded(keep, self.norm(x))])
        # One matrix product over concatenated windows: a convolution whose weights are vmapped is far slower.
        window = jnp.concatenate([line[n * self.dilation :][: x.shape[0]] for n in range(self.kernel)], axis=1)
        y = self.outer(jax.nn.relu(self.inner(window)))
        return x + dropout(y, self.rate, key), line[x.shape[0] :]


class ConvolutionalLanguageNetwork(OutputHead):
    """The network of a `ConvolutionalLanguage`, for one example."""

    def __init__(self, key: PRNGKeyArray, config: ConvolutionalLanguage, vocabulary: int):
        self.config = config
        self.embed = Embed(fold_key(key, "embed"), vocabulary, config.width, config.scale_embeddings)
        self.layers = nnx.List(
            ResidualCausalConvolution(fold_key(key, f"layer {n}"), config, config.growth**n)
            for n in range(config.layers)
        )
        self.norm = LayerNorm(config.width, config.norm_eps)
        self.output = Dense(fold_key(key, "output"), config.width, vocabulary)

    def __call__(
        self, tokens: Int[Array, " T"], keep: Bool[Array, " T"] | None = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, "T vocabulary"]:
        """Return the logits of every next token, at least float32. `keep` is False at padding, or None."""
        return self.outputs_and_maps(tokens, keep, key)[0]

    def hidden_states(self, tokens, keep=None, key=None) -> tuple[Float[Array, "T D"], dict]:
        """Return the hidden states before the output map, and no attention maps."""
        return self._extend(self.start(len(tokens)), tokens, keep, key)[0], {}

    def start(self, length: int) -> PyTree:
        """Return the state before the first token, the past of each layer. It is the same for any `length`."""
        return tuple(layer.start(self.config.width, self.dtype) for layer in self.layers)

    def step(self, state: PyTree, token: Int[Array, ""]) -> tuple[Float[Array, " vocabulary"], PyTree]:
        """Return the logits of the token after `token`, and the new state."""
        x, state = self._extend(state, token[None], None, None)
        return self.logits(x)[0], state

    @property
    def dtype(self) -> jnp.dtype:
        """The data type of the computation."""
        return jnp.dtype(self.config.dtype)

    def _extend(self, state, tokens, keep, key):
        """Return the hidden states of new tokens, and the new state."""
        keys = split_keys(key, len(self.layers) + 1)
        x, new = dropout(self.embed(tokens, self.dtype), self.config.dropout, keys[0]), []
        for layer, past, own in zip(self.layers, state, keys[1:], strict=True):
            x, past = layer.extend(x, past, keep, own)
            new.append(past)
        return self.norm(x), tuple(new)
