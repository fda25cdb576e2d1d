"""Convolutions that double the sides of an image."""

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.modules.dense import INITIALISERS
from attnlab.modules.parameter import NoDecay

TAPS = 4  # a kernel of 4 × 4: every pixel is written by as many taps as any other


class Upsample(nnx.Module):
    """The transpose of a convolution of 4 × 4 at every second place: x [H W in] -> [2H 2W out].

    y_ab = Σ_ij x_ij w_{a−2i+1, b−2j+1} + c, zero beyond the kernel w [4 4 in out]; c starts at zero (Dumoulin and Visin
    2016, section 4.5). One product for all taps, then sums: 4/9 of the work of a convolution of 3 × 3 at 2H × 2W. It
    begins as such a one, of weights drawn as `INITIALISERS` says, of the image with each pixel made into 2 × 2: taps
    drawn one by one would begin with a chessboard (Odena et al. 2016).
    """

    def __init__(self, key: PRNGKeyArray, inputs: int, outputs: int, initialiser: str = "kaiming"):
        drawn = INITIALISERS[initialiser](key, (TAPS - 1, TAPS - 1, inputs, outputs))
        for axis in (0, 1):
            drawn = sum(jnp.pad(drawn, [at if n == axis else (0, 0) for n in range(4)]) for at in ((0, 1), (1, 0)))
        self.w = nnx.Param(jnp.asarray(drawn))
        self.b = NoDecay(jnp.zeros(outputs))

    def __call__(self, x: Float[Array, "H W C"]) -> Float[Array, "rows columns D"]:
        """One example, in the dtype of x."""
        height, width, channels = x.shape
        taps = self.w[...].astype(x.dtype).transpose(2, 0, 1, 3)
        parts = x.reshape(-1, channels) @ taps.reshape(channels, -1)
        y = _joined(parts.reshape(height, width, TAPS, -1))  # [2H, W, 4·D]
        y = _joined(y.reshape(2 * height, width, TAPS, -1).swapaxes(0, 1)).swapaxes(0, 1)
        return y + self.b[...].astype(x.dtype)[None, None, :]


def _joined(parts: Float[Array, "N M taps F"]) -> Float[Array, "doubled M F"]:
    """What the taps of every place add to the two that it becomes, and to the one on either side."""
    back, even, odd, on = (parts[:, :, n] for n in range(TAPS))
    after = jnp.pad(on, ((1, 0), (0, 0), (0, 0)))[:-1]
    before = jnp.pad(back, ((0, 1), (0, 0), (0, 0)))[1:]
    return jnp.stack([even + after, odd + before], axis=1).reshape(-1, *even.shape[1:])
