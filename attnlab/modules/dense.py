"""A linear map, and the keys from which parameters are drawn."""

import zlib

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray


def child(key: PRNGKeyArray, name: str) -> PRNGKeyArray:
    """The key of a named part: the same for that name whatever else the module holds, so that variants share it."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


class Dense(nnx.Module):
    """y = x w + b: x [T in] -> [T out]. Weights uniform with variance 2/(in + out) (Glorot and Bengio 2010)."""

    def __init__(self, key: PRNGKeyArray, inputs: int, outputs: int, bias: bool = True):
        self.w = nnx.Param(jax.nn.initializers.glorot_uniform()(key, (inputs, outputs)))
        self.b = nnx.Param(jnp.zeros(outputs)) if bias else None

    def __call__(self, x: Float[Array, "T D"]) -> Float[Array, "T F"]:
        """In the dtype of x."""
        y = x @ self.w[...].astype(x.dtype)
        return y if self.b is None else y + self.b[...].astype(x.dtype)[None, :]
