"""Convolutions over one example, zero beyond the border."""

import itertools

import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops.precision import matmul


def conv_1d(x: Float[Array, "T C"], w: Float[Array, "k C D"], stride: int = 1) -> Float[Array, "N D"]:
    """y_t = Σ_n x_{t+n−⌊(k−1)/2⌋} w_n, zero beyond the ends; of every `stride`-th t. N = ⌈T/stride⌉.

    As everywhere in deep learning a cross-correlation: w is not turned round. Summed in float32 at least.
    """
    return _convolve(x, w, stride)


def conv_2d(
    x: Float[Array, "rows columns C"], w: Float[Array, "h w C D"], stride: int = 1
) -> Float[Array, "fewer_rows fewer_columns D"]:
    """y_ab = Σ_nm x_{a+n−⌊(h−1)/2⌋, b+m−⌊(w−1)/2⌋} w_nm, zero beyond the border; of every `stride`-th a and b.

    Summed in float32 at least.
    """
    return _convolve(x, w, stride)


def _convolve(x, w, stride):
    """Everything under the kernel side by side, then one product.

    XLA has a convolution, but where weights are vmapped it turns into one of many groups: on a CPU five to twenty
    times slower, gradients and all, where one set of weights loses little.
    """
    *sizes, C, D = w.shape
    padded = jnp.pad(x, [*(((size - 1) // 2, size // 2) for size in sizes), (0, 0)])
    windows = [
        padded[tuple(slice(n, n + long, stride) for n, long in zip(at, x.shape, strict=False))]
        for at in itertools.product(*map(range, sizes))
    ]
    under = jnp.concatenate(windows, axis=-1)
    y = matmul(under.reshape(-1, len(windows) * C), w.reshape(-1, D).astype(x.dtype))
    return y.reshape(*under.shape[:-1], D).astype(x.dtype)
