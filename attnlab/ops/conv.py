"""Convolutions over one example, zero beyond the border."""

import jax
from jaxtyping import Array, Float

from attnlab.ops.precision import wide


def conv_1d(x: Float[Array, "T C"], w: Float[Array, "k C D"], step: int = 1) -> Float[Array, "N D"]:
    """y_t = Σ_n x_{t+n−⌊(k−1)/2⌋} w_n, zero beyond the ends; of every `step`-th t. N = ⌈T/step⌉.

    As everywhere in deep learning a cross-correlation: w is not turned round. Summed in float32 at least.
    """
    return _convolve(x, w, step)


def conv_2d(
    x: Float[Array, "rows columns C"], w: Float[Array, "h w C D"], step: int = 1
) -> Float[Array, "fewer_rows fewer_columns D"]:
    """y_ab = Σ_nm x_{a+n−⌊(h−1)/2⌋, b+m−⌊(w−1)/2⌋} w_nm, zero beyond the border; of every `step`-th a and b.

    Summed in float32 at least.
    """
    return _convolve(x, w, step)


def _convolve(x, w, step):
    sizes = w.shape[:-2]
    space = "HW"[: len(sizes)]
    dtype = wide(x.dtype)
    y = jax.lax.conv_general_dilated(
        x[None].astype(dtype),
        w.astype(dtype),
        window_strides=[step] * len(sizes),
        padding=[((size - 1) // 2, size // 2) for size in sizes],
        dimension_numbers=(f"N{space}C", f"{space}IO", f"N{space}C"),
    )
    return y[0].astype(x.dtype)
