"""Embeddings of symbols, and logits over symbols with the same table."""

import jax
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.modules.parameter import NoDecay
from attnlab.ops.precision import matmul


class Embed(nnx.Module):
    """A table [vocabulary, D] of a vector for each symbol; `attend` scores against it, which ties weights.

    Scaled, the vectors start with standard deviation D^−½ and are read times √D, level with positions (Vaswani et al.
    2017, section 3.4). Otherwise they start with 0.02 and are read as they are (Devlin et al. 2019; Radford et al.
    2019).

    Ids are checked on the host, once per data set: a traced lookup cannot raise, and clamps or returns NaN.
    """

    def __init__(self, key: PRNGKeyArray, vocabulary: int, width: int, scaled: bool = True):
        self.table = NoDecay(jax.random.normal(key, (vocabulary, width)) * (width**-0.5 if scaled else 0.02))
        self.factor = width**0.5 if scaled else 1.0

    def __call__(self, ids: Int[Array, " T"], dtype) -> Float[Array, "T D"]:
        """Return the vectors of the ids, in `dtype`."""
        return self.table[...].astype(dtype)[ids] * self.factor

    def attend(self, x: Float[Array, "T D"]) -> Float[Array, "T vocabulary"]:
        """Return the product of x with every vector, at least float32."""
        return matmul(x, self.table[...].astype(x.dtype).T)
