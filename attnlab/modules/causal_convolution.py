"""A short causal convolution of each channel by itself."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.modules.parameter import NoDecay
from attnlab.ops.conv import causal_conv
from attnlab.ops.layer import silu


class CausalConvolution(nnx.Module):
    """y_t = silu(Σ_n w_n ⊙ x_{t−n} + b), n = 0 … size−1, with one kernel per channel (Gu and Dao 2023, section 3.4).

    Args:
        key: Key for the initial kernel, which is uniform within ±1/√size.
        channels: Number C of channels.
        size: Number of tokens that the kernel covers.
        bias: Whether there is a bias b. It is initialised to zero.
    """

    def __init__(self, key: PRNGKeyArray, channels: int, size: int, bias: bool = False):
        far = 1 / math.sqrt(size)
        self.w = nnx.Param(jax.random.uniform(key, (size, channels), minval=-far, maxval=far))
        self.b = NoDecay(jnp.zeros(channels)) if bias else None

    def __call__(
        self, x: Float[Array, "T C"], before: Float[Array, "N C"] | None = None
    ) -> tuple[Float[Array, "T C"], Float[Array, "N C"]]:
        """Convolve a sequence.

        Args:
            x: Inputs.
            before: The size−1 rows before the sequence. None: zeros, at the beginning.

        Returns:
            Outputs, and the last size−1 inputs.
        """
        before = self.start(x.dtype) if before is None else before.astype(x.dtype)
        rows = jnp.concatenate([before, x])
        y = causal_conv(rows, self.w[...].astype(x.dtype))
        y = y if self.b is None else y + self.b[...].astype(x.dtype)[None, :]
        return silu(y), rows[x.shape[0] :]

    def start(self, dtype) -> Float[Array, "N C"]:
        """Return the rows before the first token, which are zero."""
        size, channels = self.w.shape
        return jnp.zeros((size - 1, channels), dtype)
