"""Norms with learned parameters."""

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from attnlab.modules.parameter import NoDecay
from attnlab.ops import layer


class LayerNorm(nnx.Module):
    """`attnlab.ops.layer.layer_norm` with learned scale and shift.

    A call raises ValueError if x has another width.
    """

    def __init__(self, width: int, epsilon: float = 1e-6):
        self.epsilon = epsilon
        self.scale = NoDecay(jnp.ones(width))
        self.shift = NoDecay(jnp.zeros(width))

    def __call__(self, x: Float[Array, "T D"]) -> Float[Array, "T D"]:
        """Normalise over features."""
        _check_shape(x, self.scale)
        return layer.layer_norm(x, self.scale[...], self.shift[...], self.epsilon)


class RMSNorm(nnx.Module):
    """`attnlab.ops.layer.rms_norm` with a learned scale.

    A call raises ValueError if x has another width.
    """

    def __init__(self, width: int, epsilon: float = 1e-6):
        self.epsilon = epsilon
        self.scale = NoDecay(jnp.ones(width))

    def __call__(self, x: Float[Array, "... D"]) -> Float[Array, "... D"]:
        """Normalise over features."""
        _check_shape(x, self.scale)
        return layer.rms_norm(x, self.scale[...], self.epsilon)


class GroupedHeadNorm(nnx.Module):
    """Group norm of the outputs of H heads, one group per head and token, with learned scale and shift [H V].

    A call raises ValueError if x has other numbers of heads or features.
    """

    def __init__(self, heads: int, width: int, epsilon: float = 1e-6):
        self.epsilon = epsilon
        self.scale = NoDecay(jnp.ones((heads, width)))
        self.shift = NoDecay(jnp.zeros((heads, width)))

    def __call__(self, x: Float[Array, "T H V"]) -> Float[Array, "T H V"]:
        """Normalise each head over its features."""
        _check_shape(x, self.scale)
        plain = jnp.ones(x.shape[-1]), jnp.zeros(x.shape[-1])
        scale, shift = (each[...].astype(x.dtype)[None] for each in (self.scale, self.shift))
        return layer.layer_norm(x, *plain, self.epsilon) * scale + shift


def _check_shape(x: Float[Array, "..."], scale: nnx.Param) -> None:
    """Raise ValueError unless the last axes of x have the shape of `scale`: an axis of size 1 would be repeated."""
    if x.shape[x.ndim - scale.ndim :] != scale.shape:
        raise ValueError(f"x has shape {x.shape}, expected {scale.shape} as its last axes")


NORMS = {"layer": LayerNorm, "rms": RMSNorm}
