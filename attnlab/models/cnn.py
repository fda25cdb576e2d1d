"""A convolutional network: what the Vision Transformer is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.models.config import DTYPES, check_dropout, check_names, check_norm_eps, check_sizes
from attnlab.models.mlp import image
from attnlab.modules.conv import Conv, GroupNorm
from attnlab.modules.dense import Dense, fold_key
from attnlab.ops.layer import dropout, relu
from attnlab.ops.precision import accumulation_dtype


@dataclass(frozen=True)
class CNN:
    """Residual convolutions at falling resolutions, and scores of classes from all places of the last.

    Each of `scales` halves the sides and doubles the channels, of which the last has `width`, and each before it half
    as many, rounded up; `layers` convolutions of `kernel` × `kernel` follow, each x + conv(relu(norm(x))) (He et al.
    2016, pre-activation), with the group norm of one group: a batch norm's statistics would be trained. The head is
    dense over places and channels (LeCun et al. 1998), so that it tells where in the image something is, and images of
    one size alone can be read.

    Raises ValueError naming the field for what cannot work.
    """

    width: int = 64
    layers: int = 1
    scales: int = 3
    kernel: int = 3
    dropout: float = 0.0
    norm_eps: float = 1e-5
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"
    missing_values: ClassVar = {"norm_eps": 1e-6}

    def __post_init__(self):
        check_sizes(self, "width", "layers", "kernel")
        if not 1 <= self.scales <= 16:
            raise ValueError(f"model.scales={self.scales} must be at least 1, and at most 16")
        check_dropout(self)
        check_norm_eps(self)
        check_names(self, dtype=DTYPES)

    @property
    def attentions(self) -> dict[str, Any]:
        """None."""
        return {}

    def create(self, key: PRNGKeyArray, shape: Any) -> CNNNetwork:
        """A new network for images of that shape (`attnlab.tasks.Classes` of an `Image`)."""
        source = image(self, shape)
        if min(source.height, source.width) < 2**self.scales:
            raise ValueError(
                f"model.scales={self.scales} halves images of {source.height} × {source.width} to less than one pixel"
            )
        return CNNNetwork(key, self, source, shape.classes)


class Residual(nnx.Module):
    """x + conv(relu(norm(x)))."""

    def __init__(self, key: PRNGKeyArray, width: int, kernel: int, norm_eps: float):
        self.norm = GroupNorm(width, epsilon=norm_eps)
        self.conv = Conv(key, width, width, (kernel, kernel))

    def __call__(self, x: Float[Array, "H W D"]) -> Float[Array, "H W D"]:
        """In the dtype of x."""
        return x + self.conv(relu(self.norm(x)))


class CNNNetwork(nnx.Module):
    """The network of a `CNN`; one example."""

    def __init__(self, key: PRNGKeyArray, config: CNN, source: Any, classes: int):
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
        """Scores of the classes, in float32 at least; of an image nothing is padding."""
        x = source.astype(jnp.dtype(self.dtype))
        for layer in self.layers:
            x = layer(x)
        x = relu(self.norm(x)).reshape(1, -1)
        return self.head(dropout(x, self.rate, key))[0].astype(accumulation_dtype(x.dtype))
