"""A multilayer perceptron for images, without any knowledge of where pixels are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.documented import Documented
from attnlab.models.config import DTYPES, check_dropout, check_names, check_shape, check_sizes
from attnlab.modules.dense import Dense, fold_key
from attnlab.ops.layer import ACTIVATIONS, dropout
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
        check_sizes(self, "width", "layers")
        check_dropout(self)
        check_names(self, dtype=DTYPES)

    @property
    def attentions(self) -> dict[str, Any]:
        """Empty: the model has no attention."""
        return {}

    def create(self, key: PRNGKeyArray, shape: Any) -> MLPNetwork:
        """Create a network for images of `shape` (`attnlab.tasks.Classes` of an `Image`)."""
        return MLPNetwork(key, self, image(self, shape), shape.classes)


class MLPNetwork(nnx.Module):
    """The network of an `MLP`, for one example."""

    def __init__(self, key: PRNGKeyArray, config: MLP, source: Any, classes: int):
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
        keys = [None] * len(self.hidden) if key is None else jax.random.split(key, len(self.hidden))
        for dense, key in zip(self.hidden, keys, strict=True):
            x = dropout(ACTIVATIONS["relu"](dense(x)), self.rate, key)
        return self.head(x)[0].astype(accumulation_dtype(x.dtype))


def image(config: Any, shape: Any) -> Any:
    """Return the shape of the images to classify. Raises ValueError for other data."""
    check_shape(config, shape, "source", "classes")
    if not hasattr(shape.source, "height") or shape.each:
        raise ValueError(f"model={type(config).__name__} sorts images, and this task's data are others")
    return shape.source
