"""Symbols as vectors, and vectors as scores over symbols."""

import jax
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.modules.parameter import NoDecay
from attnlab.ops.precision import product


class Embed(nnx.Module):
    """A table [vocabulary, D] of vectors of norm near 1, read times √D; `attend` scores against it, which ties weights.

    Ids are checked on the host, once a data set: a traced lookup cannot raise, and clamps or answers NaN.
    """

    def __init__(self, key: PRNGKeyArray, vocabulary: int, width: int):
        self.table = NoDecay(jax.random.normal(key, (vocabulary, width)) * width**-0.5)
        self.width = width

    def __call__(self, ids: Int[Array, " T"], dtype) -> Float[Array, "T D"]:
        """The vectors of those ids, times √D so that they stand level with positions (Vaswani et al. 2017, 3.4)."""
        return self.table[...].astype(dtype)[ids] * self.width**0.5

    def attend(self, x: Float[Array, "T D"]) -> Float[Array, "T vocabulary"]:
        """The product of x with every vector, in float32 at least."""
        return product(x, self.table[...].astype(x.dtype).T)
