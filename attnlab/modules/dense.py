"""Linear maps, and random keys for parameters by name."""

import itertools
import zlib
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.modules.parameter import NoDecay
from attnlab.ops.dense import flat_matmul

INITIALISERS: dict[str, Callable] = {
    "gaussian": jax.nn.initializers.normal(0.02),
    "xavier": jax.nn.initializers.glorot_uniform(),
    "kaiming": jax.nn.initializers.he_normal(),
}
"""Initial distributions of weights, by name.

"gaussian" is normal with standard deviation 0.02 for all sizes (Devlin et al. 2019). "xavier" is uniform with variance
2/(in + out) (Glorot and Bengio 2010). "kaiming" is normal, truncated at about 2.3 standard deviations, with variance
2/in (He et al. 2015).
"""


def fold_key(key: PRNGKeyArray, name: str) -> PRNGKeyArray:
    """Return the key of a module's part with the given name.

    The key does not depend on the other parts, so variants of a module share the initial values of common parts.
    """
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


class Dense(nnx.Module):
    """Linear map y = x w + b from [T in] to [T out].

    Args:
        key: Key for the initial weights.
        inputs: Size of the inputs.
        outputs: Size of the outputs.
        bias: Whether there is a bias b. It is initialised to zero.
        initialiser: Name of the initial distribution of w in `INITIALISERS`.

    Raises:
        ValueError: The initialiser is unknown. A call raises it if x has another width.
    """

    def __init__(self, key: PRNGKeyArray, inputs: int, outputs: int, bias: bool = True, initialiser: str = "xavier"):
        if initialiser not in INITIALISERS:
            raise ValueError(f"{initialiser=} must be one of {', '.join(INITIALISERS)}")
        self.w = nnx.Param(INITIALISERS[initialiser](key, (inputs, outputs)))
        self.b = NoDecay(jnp.zeros(outputs)) if bias else None

    def __call__(self, x: Float[Array, "T D"]) -> Float[Array, "T F"]:
        """Return x w + b in the dtype of x."""
        if x.shape[1] != self.w.shape[0]:
            raise ValueError(f"x has width {x.shape[1]}, expected {self.w.shape[0]}")
        y = flat_matmul(x, self.w[...].astype(x.dtype))
        return y if self.b is None else y + self.b[...].astype(x.dtype)[None, :]


def fused_projection(maps: Iterable[Dense], x: Float[Array, "T D"]) -> list[Float[Array, "T F"]]:
    """Apply several linear maps to x in one matrix product, which is faster than one product for each.

    Returns:
        The output of each map, in order.
    """
    maps = list(maps)
    y = flat_matmul(x, jnp.concatenate([one.w[...] for one in maps], axis=1).astype(x.dtype))
    if any(one.b is not None for one in maps):
        biases = [jnp.zeros(one.w.shape[1], one.w.dtype) if one.b is None else one.b[...] for one in maps]
        y = y + jnp.concatenate(biases).astype(x.dtype)[None, :]
    ends = itertools.accumulate(one.w.shape[1] for one in maps[:-1])
    return jnp.split(y, list(ends), axis=1)
