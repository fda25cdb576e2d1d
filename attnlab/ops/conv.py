"""Convolutions of one example with zero padding."""

import itertools
from functools import reduce
from operator import add

import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops.precision import matmul


def conv_1d(x: Float[Array, "T C"], w: Float[Array, "k C D"], stride: int = 1) -> Float[Array, "N D"]:
    """One-dimensional convolution: y_t = Σ_n x_{t+n−⌊(k−1)/2⌋} w_n, with zeros beyond the ends.

    As everywhere in deep learning it is a cross-correlation: w is not reversed. It is accumulated in float32 at least.

    Args:
      x: inputs [T C].
      w: kernel [k C D].
      stride: only every `stride`-th t is computed. Defaults to 1.

    Returns:
      Outputs [N D], N = ⌈T/stride⌉, in the dtype of x.
    """
    return _convolve(x, w, stride)


def conv_2d(
    x: Float[Array, "rows columns C"], w: Float[Array, "h w C D"], stride: int = 1
) -> Float[Array, "fewer_rows fewer_columns D"]:
    """Two-dimensional convolution: y_ab = Σ_nm x_{a+n−⌊(h−1)/2⌋, b+m−⌊(w−1)/2⌋} w_nm, with zeros beyond the border.

    It is accumulated in float32 at least.

    Args:
      x: an image [rows columns C].
      w: kernel [h w C D].
      stride: only every `stride`-th a and b is computed. Defaults to 1.

    Returns:
      Outputs [⌈rows/stride⌉ ⌈columns/stride⌉ D], in the dtype of x.
    """
    return _convolve(x, w, stride)


def causal_conv(x: Float[Array, "N C"], w: Float[Array, "k C"]) -> Float[Array, "T C"]:
    """Convolution of each channel by itself: y_t = Σ_n w_n ⊙ x_{k−1+t−n}, n = 0 … k−1, without padding.

    Unlike in the other functions here, the kernel is reversed: w_0 weighs the row itself, w_n the n-th row before it.

    Args:
      x: inputs [N C], of which the first k−1 rows come before the outputs.
      w: kernel [k C].

    Returns:
      Outputs [T C], T = N − k + 1, in the dtype of x.
    """
    back = w.shape[0] - 1
    T = x.shape[0] - back
    # Summed term by term. On a CPU with jax 0.10.2, a sum over so short an axis takes 10 to 100 times as long.
    return reduce(add, (w[n : n + 1] * x[back - n : back - n + T] for n in range(w.shape[0])))


def _convolve(x, w, stride):
    """Convolves by gathering all windows and multiplying them by the kernel in one product.

    XLA's own convolution becomes a grouped convolution if the weights are vmapped. On a CPU that is five to twenty
    times slower, with gradients. With one set of weights this form loses little.
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
