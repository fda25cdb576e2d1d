"""A linear map, and the keys from which parameters are drawn."""

import itertools
import zlib
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.modules.parameter import NoDecay
from attnlab.ops.dense import flat_matmul

# How weights start: the same small spread everywhere (Devlin et al. 2019: 0.02), variance 2/(in + out) (Glorot and
# Bengio 2010, uniform), variance 2/in (He et al. 2015, normal).
INITIALISERS: dict[str, Callable] = {
    "gaussian": jax.nn.initializers.normal(0.02),
    "xavier": jax.nn.initializers.glorot_uniform(),
    "kaiming": jax.nn.initializers.he_normal(),
}


def fold_key(key: PRNGKeyArray, name: str) -> PRNGKeyArray:
    """The key of a named part: the same for that name whatever else the module holds, so that variants share it."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


class Dense(nnx.Module):
    """y = x w + b: x [T in] -> [T out]. Weights start as `INITIALISERS` says, b at zero or not at all."""

    def __init__(self, key: PRNGKeyArray, inputs: int, outputs: int, bias: bool = True, initialiser: str = "xavier"):
        if initialiser not in INITIALISERS:
            raise ValueError(f"{initialiser=} must be one of {', '.join(INITIALISERS)}")
        self.w = nnx.Param(INITIALISERS[initialiser](key, (inputs, outputs)))
        self.b = NoDecay(jnp.zeros(outputs)) if bias else None

    def __call__(self, x: Float[Array, "T D"]) -> Float[Array, "T F"]:
        """In the dtype of x."""
        if x.shape[1] != self.w.shape[0]:
            raise ValueError(f"x has width {x.shape[1]}, and the map takes {self.w.shape[0]}")
        y = flat_matmul(x, self.w[...].astype(x.dtype))
        return y if self.b is None else y + self.b[...].astype(x.dtype)[None, :]


def fused_projection(maps: Iterable[Dense], x: Float[Array, "T D"]) -> list[Float[Array, "T F"]]:
    """What each of several maps makes of x, in one product: a wide one is faster than several narrow ones."""
    maps = list(maps)
    y = flat_matmul(x, jnp.concatenate([one.w[...] for one in maps], axis=1).astype(x.dtype))
    if biases := [one.b[...] for one in maps if one.b is not None]:
        y = y + jnp.concatenate(biases).astype(x.dtype)[None, :]
    ends = itertools.accumulate(one.w.shape[1] for one in maps[:-1])
    return jnp.split(y, list(ends), axis=1)
