"""A convolutional network for images, a baseline for the Vision Transformer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism
from attnlab.models.checks import DTYPES, check_dropout, check_names, check_norm_eps, check_sizes
from attnlab.models.shapes import ImageShape, Shape, check_image
from attnlab.modules.conv import Conv, GroupNorm
from attnlab.modules.dense import Dense, fold_key
from attnlab.ops.layer import dropout, relu
from attnlab.ops.precision import accumulation_dtype


@dataclass(frozen=True)
class CNN(metaclass=Documented):
    """Configuration of an image classifier with residual convolutions at decreasing resolutions.

    Each scale halves the sides of the image and doubles the channels. `layers` residual convolutions
    x + conv(relu(norm(x))) follow (He et al. 2016, pre-activation). The norm is a group norm with one group, because
    the statistics of a batch norm would be treated as parameters.

    The head is dense over positions and channels (LeCun et al. 1998). It can therefore use positions in the image, and
    the network reads images of one size only.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    width: int = 64
    """Number of channels at the last scale. Each earlier scale has half as many as the next, rounded up."""
    layers: int = 1
    """Number of residual convolutions per scale."""
    scales: int = 3
    """Number of scales, 1 to 16."""
    kernel: int = 3
    """Side of the square kernels in pixels."""
    dropout: float = 0.0
    """Dropout probability, applied before the head."""
    norm_eps: float = 1e-5
    """The ε that the norms add to the variance, at least 1e-37 and below 1."""
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"
    """Data type of the computation. Parameters are always float32."""
    missing_values: ClassVar = {"norm_eps": 1e-6}
    """Values of fields that are missing in configurations of older versions."""

    def __post_init__(self):
        check_sizes(width=self.width, layers=self.layers, kernel=self.kernel)
        if not 1 <= self.scales <= 16:
            raise ValueError(f"model.scales={self.scales} must be at least 1, and at most 16")
        check_dropout(self.dropout)
        check_norm_eps(self.norm_eps)
        check_names(dtype=(self.dtype, DTYPES))

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """Empty: the model has no attention."""
        return {}

    def create(self, key: PRNGKeyArray, shape: Shape) -> CNNNetwork:
        """Create a network for images of `shape` (`attnlab.tasks.Classes` of an `Image`)."""
        source, classes = check_image(self, shape)
        if min(source.height, source.width) < 2**self.scales:
            raise ValueError(
                f"model.scales={self.scales} halves images of {source.height} × {source.width} to less than one pixel"
            )
        return CNNNetwork(key, self, source, classes)


class Residual(nnx.Module):
    """A residual convolution: x + conv(relu(norm(x)))."""

    def __init__(self, key: PRNGKeyArray, width: int, kernel: int, norm_eps: float):
        self.norm = GroupNorm(width, epsilon=norm_eps)
        self.conv = Conv(key, width, width, (kernel, kernel))

    def __call__(self, x: Float[Array, "H W D"]) -> Float[Array, "H W D"]:
        """Apply the block, in the dtype of x."""
        return x + self.conv(relu(self.norm(x)))


class CNNNetwork(nnx.Module):
    """The network of a `CNN`, for one example."""

    def __init__(self, key: PRNGKeyArray, config: CNN, source: ImageShape, classes: int):
        self.rate, self.dtype = config.dropout, config.dtype
        halved = reversed(range(config.scales))
        kernel, widths = config.kernel, [source.channels, *(-(-config.width // 2**n) for n in halved)]
        layers: list[nnx.Module] = []
        for n, (inputs, width) in enumerate(pairwise(widths)):
            layers.append(Conv(fold_key(key, f"halve{n}"), inputs, width, (kernel, kernel), 2))
            layers += [
                Residual(fold_key(key, f"layer{n}.{m}"), width, kernel, config.norm_eps) for m in range(config.layers)
            ]
        self.layers = nnx.List(layers)
        self.norm = GroupNorm(widths[-1], epsilon=config.norm_eps)
        places = math.prod(-(-side // 2**config.scales) for side in (source.height, source.width))
        self.head = Dense(fold_key(key, "head"), places * widths[-1], classes)

    def __call__(
        self, source: Float[Array, "rows columns C"], keep: None = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, " classes"]:
        """Return the logits of the classes, at least float32. `keep` is unused: images have no padding."""
        x = source.astype(jnp.dtype(self.dtype))
        for layer in self.layers:
            x = layer(x)
        x = relu(self.norm(x)).reshape(1, -1)
        return self.head(dropout(x, self.rate, key))[0].astype(accumulation_dtype(x.dtype))
