"""Layer norm and RMS norm with learned parameters."""

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from attnlab.modules.parameter import NoDecay
from attnlab.ops import layer


class LayerNorm(nnx.Module):
    """`attnlab.ops.layer.layer_norm` with learned scale and shift."""

    def __init__(self, width: int, epsilon: float = 1e-6):
        self.epsilon = epsilon
        self.scale = NoDecay(jnp.ones(width))
        self.shift = NoDecay(jnp.zeros(width))

    def __call__(self, x: Float[Array, "T D"]) -> Float[Array, "T D"]:
        """Normalise over features."""
        return layer.layer_norm(x, self.scale[...], self.shift[...], self.epsilon)


class RMSNorm(nnx.Module):
    """`attnlab.ops.layer.rms_norm` with a learned scale."""

    def __init__(self, width: int, epsilon: float = 1e-6):
        self.epsilon = epsilon
        self.scale = NoDecay(jnp.ones(width))

    def __call__(self, x: Float[Array, "T D"]) -> Float[Array, "T D"]:
        """Normalise over features."""
        return layer.rms_norm(x, self.scale[...], self.epsilon)


NORMS = {"layer": LayerNorm, "rms": RMSNorm}
