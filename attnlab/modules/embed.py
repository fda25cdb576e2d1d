"""Embeddings of symbols, and logits from products with the same table."""

import jax
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.modules.parameter import NoDecay
from attnlab.ops.precision import matmul


class Embed(nnx.Module):
    """A table [vocabulary, D] with one vector per symbol. `attend` computes logits with the same table.

    Ids must be below the vocabulary. They are not checked here, because a traced lookup cannot raise.

    Args:
        key: Key for the initial vectors.
        vocabulary: Number of symbols.
        width: Size D of the vectors.
        scaled: True: the initial standard deviation is D^−½, and vectors are multiplied by √D when they are looked up
            (Vaswani et al. 2017, section 3.4). False: the standard deviation is 0.02, and vectors are not multiplied
            (Devlin et al. 2019; Radford et al. 2019).
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
