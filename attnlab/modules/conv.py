"""Convolutions with their parameters, and the norm that goes with them."""

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

CONVOLUTIONS = {1: conv_1d, 2: conv_2d}  # by the number of axes that a kernel has


class Conv(nnx.Module):
    """y = x ∗ w + b: x [T in] -> [N out] by a kernel (k,), or [H W in] -> [h w out] by a kernel (h, w).

    Zero beyond the border; of every `stride`-th place, so that N = ⌈T/stride⌉. Weights start as `INITIALISERS` says (He
    et al. 2015, made for what a relu follows), b at zero or not at all.

    Raises ValueError for a size or stride below 1, a kernel of neither one axis nor two, and x of another width.
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
                f"{inputs=}, {outputs=}, {kernel=}, {stride=} must be 1 or more, the kernel of 1 or 2 axes"
            )
        if initialiser not in INITIALISERS:
            raise ValueError(f"{initialiser=} must be one of {', '.join(INITIALISERS)}")
        self.w = nnx.Param(INITIALISERS[initialiser](key, (*kernel, inputs, outputs)))
        self.b = NoDecay(jnp.zeros(outputs)) if bias else None
        self.stride = stride

    def __call__(self, x: Float[Array, "*space C"]) -> Float[Array, "*fewer D"]:
        """One example, in the dtype of x."""
        *kernel, width, outputs = self.w.shape
        if x.ndim != len(kernel) + 1 or x.shape[-1] != width:
            raise ValueError(f"x has shape {x.shape}, and the convolution takes {len(kernel)} axes and width {width}")
        y = CONVOLUTIONS[len(kernel)](x, self.w[...].astype(x.dtype), self.stride)
        return y if self.b is None else y + self.b[...].astype(x.dtype).reshape(*[1] * len(kernel), outputs)


class GroupNorm(nnx.Module):
    """(x − mean) / √(variance + ε) · scale + shift, over all places and the features of a group (Wu and He 2018).

    One example: x [T D] or [H W D]; `groups` 1 is layer norm over the whole of it. No batch has a part in it.
    Raises ValueError where groups do not divide the width.
    """

    def __init__(self, width: int, groups: int = 1, epsilon: float = 1e-5):
        if groups < 1 or width % groups:
            raise ValueError(f"{groups=} must divide {width=}")
        self.scale = NoDecay(jnp.ones(width))
        self.shift = NoDecay(jnp.zeros(width))
        self.groups, self.epsilon = groups, epsilon

    def __call__(self, x: Float[Array, "*space D"]) -> Float[Array, "*space D"]:
        """In the dtype of x; statistics in float32 at least."""
        grouped = x.astype(accumulation_dtype(x.dtype)).reshape(math.prod(x.shape[:-1]), self.groups, -1)
        centred = grouped - grouped.mean(axis=(0, 2), keepdims=True)
        level = jax.lax.rsqrt((centred * centred).mean(axis=(0, 2), keepdims=True) + self.epsilon)
        y = (centred * level).reshape(-1, x.shape[-1]).astype(x.dtype)
        scale, shift = (each[...].astype(x.dtype)[None, :] for each in (self.scale, self.shift))
        return (y * scale + shift).reshape(x.shape)
