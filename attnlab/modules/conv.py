"""Convolution layers and group norm."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.modules.dense import INITIALISERS
from attnlab.modules.parameter import NoDecay
from attnlab.ops.conv import conv_1d, conv_2d
from attnlab.ops.precision import accumulation_dtype

CONVOLUTIONS = {1: conv_1d, 2: conv_2d}  # by the number of axes of the kernel


class Conv(nnx.Module):
    """Convolution y = x ∗ w + b over one or two axes, padded with zeros.

    A kernel (k,) maps x [T in] to [N out] with N = ⌈T/stride⌉. A kernel (h, w) maps [H W in] to [⌈H/stride⌉ ⌈W/stride⌉
    out].

    Args:
        key: Key for the initial weights.
        inputs: Number of input channels.
        outputs: Number of output channels.
        kernel: Size of the kernel along one or two axes.
        stride: Distance between the positions of two outputs.
        bias: Whether there is a bias b. It is initialised to zero.
        initialiser: Name of the initial distribution of w in `INITIALISERS`. The default is made for layers that are
            followed by a ReLU (He et al. 2015).

    Raises:
        ValueError: A size or the stride is below 1, the kernel has neither one axis nor two, or the initialiser is
            unknown. A call raises it if x has another number of axes or channels.
    """

    def __init__(
        self,
        key: PRNGKeyArray,
        inputs: int,
        outputs: int,
        kernel: Sequence[int] = (3, 3),
        stride: int = 1,
        bias: bool = True,
        initialiser: str = "kaiming",
    ):
        if len(kernel) not in CONVOLUTIONS or min(inputs, outputs, stride, *kernel) < 1:
            raise ValueError(
                f"{inputs=}, {outputs=}, {kernel=}, {stride=} must be 1 or more, and the kernel must have 1 or 2 axes"
            )
        if initialiser not in INITIALISERS:
            raise ValueError(f"{initialiser=} must be one of {', '.join(INITIALISERS)}")
        self.w = nnx.Param(INITIALISERS[initialiser](key, (*kernel, inputs, outputs)))
        self.b = NoDecay(jnp.zeros(outputs)) if bias else None
        self.stride = stride

    def __call__(self, x: Float[Array, "*space C"]) -> Float[Array, "*fewer D"]:
        """Convolve one example. The result has the dtype of x."""
        *kernel, width, outputs = self.w.shape
        if x.ndim != len(kernel) + 1 or x.shape[-1] != width:
            raise ValueError(
                f"x has shape {x.shape}, expected {len(kernel) + 1} axes of which the last has size {width}"
            )
        y = CONVOLUTIONS[len(kernel)](x, self.w[...].astype(x.dtype), self.stride)
        return y if self.b is None else y + self.b[...].astype(x.dtype).reshape(*[1] * len(kernel), outputs)


class GroupNorm(nnx.Module):
    """Group norm (Wu and He 2018): (x − mean) / √(variance + ε) · scale + shift, for one example [T D] or [H W D].

    Mean and variance are taken over all positions and the channels of a group. They do not depend on other examples of
    a batch.

    Args:
        width: Number D of channels.
        groups: Number of groups; must divide `width`. 1 is layer norm over the whole example.
        epsilon: The ε added to the variance.

    Raises:
        ValueError: `groups` does not divide `width`.
    """

    def __init__(self, width: int, groups: int = 1, epsilon: float = 1e-5):
        if groups < 1 or width % groups:
            raise ValueError(f"{groups=} must divide {width=}")
        self.scale = NoDecay(jnp.ones(width))
        self.shift = NoDecay(jnp.zeros(width))
        self.groups, self.epsilon = groups, epsilon

    def __call__(self, x: Float[Array, "*space D"]) -> Float[Array, "*space D"]:
        """Normalise one example. The result has the dtype of x, and the statistics are at least float32."""
        grouped = x.astype(accumulation_dtype(x.dtype)).reshape(math.prod(x.shape[:-1]), self.groups, -1)
        centred = grouped - grouped.mean(axis=(0, 2), keepdims=True)
        level = jax.lax.rsqrt((centred * centred).mean(axis=(0, 2), keepdims=True) + self.epsilon)
        y = (centred * level).reshape(-1, x.shape[-1]).astype(x.dtype)
        scale, shift = (each[...].astype(x.dtype)[None, :] for each in (self.scale, self.shift))
        return (y * scale + shift).reshape(x.shape)
