"""A multilayer perceptron: every number of an image joined with every other, and nothing told of where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.models.config import DTYPES, check_dropout, check_names, check_shape, check_sizes
from attnlab.modules.dense import Dense, fold_key
from attnlab.ops.layer import ACTIVATIONS, dropout
from attnlab.ops.precision import accumulation_dtype


@dataclass(frozen=True)
class MLP:
    """The pixels side by side, `layers` hidden layers of `width`, and scores of classes: a baseline without attention.

    Raises ValueError naming the field for what cannot work.
    """

    width: int = 128
    layers: int = 1
    dropout: float = 0.0
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"

    def __post_init__(self):
        check_sizes(self, "width", "layers")
        check_dropout(self)
        check_names(self, dtype=DTYPES)

    @property
    def attentions(self) -> dict[str, Any]:
        """None."""
        return {}

    def create(self, key: PRNGKeyArray, shape: Any) -> MLPNetwork:
        """A new network for images of that shape (`attnlab.tasks.Classes` of an `Image`)."""
        return MLPNetwork(key, self, image(self, shape), shape.classes)


class MLPNetwork(nnx.Module):
    """The network of an `MLP`; one example."""

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
        """Scores of the classes, in float32 at least; of an image nothing is padding."""
        x = source.astype(jnp.dtype(self.dtype)).reshape(1, -1)
        keys = [None] * len(self.hidden) if key is None else jax.random.split(key, len(self.hidden))
        for dense, key in zip(self.hidden, keys, strict=True):
            x = dropout(ACTIVATIONS["relu"](dense(x)), self.rate, key)
        return self.head(x)[0].astype(accumulation_dtype(x.dtype))


def image(config: Any, shape: Any) -> Any:
    """The shape of the images to be sorted. Raises ValueError, naming the model, where the data are none."""
    check_shape(config, shape, "source", "classes")
    if not hasattr(shape.source, "height") or shape.each:
        raise ValueError(f"model={type(config).__name__} sorts images, and this task's data are others")
    return shape.source
