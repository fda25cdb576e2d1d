"""A multilayer perceptron for images, without any knowledge of where pixels are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism
from attnlab.models.checks import DTYPES, check_dropout, check_names, check_sizes
from attnlab.models.shapes import ImageShape, Shape, check_image
from attnlab.modules.dense import Dense, fold_key
from attnlab.ops.layer import ACTIVATIONS, dropout, split_keys
from attnlab.ops.precision import accumulation_dtype


@dataclass(frozen=True)
class MLP(metaclass=Documented):
    """Configuration of an image classifier with hidden ReLU layers on flattened pixels: a baseline without attention.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    width: int = 128
    """Size of the hidden layers."""
    layers: int = 1
    """Number of hidden layers."""
    dropout: float = 0.0
    """Dropout probability, applied after each hidden layer."""
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"
    """Data type of the computation. Parameters are always float32."""

    def __post_init__(self):
        check_sizes(width=self.width, layers=self.layers)
        check_dropout(self.dropout)
        check_names(dtype=(self.dtype, DTYPES))

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """Empty: the model has no attention."""
        return {}

    def create(self, key: PRNGKeyArray, shape: Shape) -> MLPNetwork:
        """Create a network for images of `shape` (`attnlab.tasks.Classes` of an `Image`)."""
        return MLPNetwork(key, self, *check_image(self, shape))


class MLPNetwork(nnx.Module):
    """The network of an `MLP`, for one example."""

    def __init__(self, key: PRNGKeyArray, config: MLP, source: ImageShape, classes: int):
        self.rate, self.dtype = config.dropout, config.dtype
        first = source.height * source.width * source.channels
        inputs = [first, *[config.width] * (config.layers - 1)]
        self.hidden = nnx.List(
            [Dense(fold_key(key, f"hidden{n}"), size, config.width, True, "kaiming") for n, size in enumerate(inputs)]
        )
        self.head = Dense(fold_key(key, "head"), config.width, classes)

    def __call__(
        self, source: Float[Array, "rows columns C"], keep: None = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, " classes"]:
        """Return the logits of the classes, at least float32. `keep` is unused: images have no padding."""
        x = source.astype(jnp.dtype(self.dtype)).reshape(1, -1)
        keys = split_keys(key, len(self.hidden))
        for dense, key in zip(self.hidden, keys, strict=True):
            x = dropout(ACTIVATIONS["relu"](dense(x)), self.rate, key)
        return self.head(x)[0].astype(accumulation_dtype(x.dtype))
