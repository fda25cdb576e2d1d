"""Sparse Sinkhorn attention."""

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, moved
from attnlab.mechanisms.whole import Whole
from attnlab.ops.counts import check_counts
from attnlab.ops.order import by_position, ranks
from attnlab.ops.precision import accumulation_dtype, divide, matmul
from attnlab.ops.score import scaled_dot
from attnlab.ops.sinkhorn import balance
from attnlab.ops.softmax import masked_softmax

FAINT = 1e-30  # smaller shares of a slot count as zero, because dividing by them would overflow


@final
@dataclass(frozen=True)
class Sinkhorn(Whole):
    """Softmax attention to the query's own block and to one softly sorted block (sparse Sinkhorn attention).

    y = softmax([q k_ownᵀ, q (S k)ᵀ]/√K) [v_own; S v]

    Kept tokens are numbered in order of position. The n-th key is in block n // `block`. Queries are numbered likewise,
    aligned so that the last query lies where its position falls among the keys. In self-attention a query's own block
    is therefore the block that it is in. Queries before the first block or after the last use the nearest one.

    S [query blocks, key blocks] is q̄ W k̄ᵀ / (√K · `temperature`), exponentiated and balanced in `steps` steps. q̄ and
    k̄ are the means of the blocks, and W is learned as `sort`. The paper uses a layer instead, whose outputs fix the
    number of blocks. A key of the sorted block is the mean, weighted by S, of the keys at that place in all blocks. If
    the last block has no key at a place, the softmax weight of that place is multiplied by the remaining share of S.
    There is no Gumbel noise.

    The output of a query depends on the other queries. Time is O(T·block·(K+V) + T·S/block·(K+V)). This mechanism
    cannot decode.

    Raises:
        ValueError: if `block` or `steps` is below 1, or `temperature` is not positive.
        NotImplementedError: if the mask is not a product of kept queries and kept keys.

    Source: Tay et al. 2020, section 3.
    """

    block: int = 64
    """Number of tokens per block."""
    steps: int = 8
    """Number of steps that balance rows and columns."""
    temperature: float = 0.75
    """Temperature of the sorting. Smaller values sort harder."""
    traits = Traits(decodes=False, row_independent=False, position_dependent=True)

    def __post_init__(self):
        check_counts(block=self.block, steps=self.steps)
        if not self.temperature > 0:
            raise ValueError(f"temperature={self.temperature} must be above 0")

    @property
    def learned(self):
        """`sort`: matrix W that scores how well a block of queries and a block of keys fit."""
        return {"sort": ("K", "K")}

    def initial(self, key, K, V):
        """Returns normal values of variance 1/K (Glorot and Bengio 2010)."""
        return {"sort": jax.random.normal(key, (K, K), jnp.float32) * K**-0.5}

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, sort):
        """Attends by blocks, and restores the given order."""
        if (factors := mask.factors(i, j)) is None:
            raise NotImplementedError(
                f"{self} does not support {mask}: it sorts blocks of keys for all queries at once"
            )
        if not q.shape[0] or not k.shape[0]:
            return jnp.zeros((q.shape[0], v.shape[1]), v.dtype)
        rows, columns = (jnp.asarray(each) for each in factors)
        of_q, of_k = by_position(rows, i), by_position(columns, j)
        first, shift = _stand(rows, columns, i, j, self.block)
        queries, filled = _cut(q.astype(accumulation_dtype(q.dtype)), rows, of_q, self.block, shift)
        keys, filled_k = _cut(k.astype(accumulation_dtype(k.dtype)), columns, of_k, self.block)
        values, _ = _cut(v.astype(accumulation_dtype(v.dtype)), columns, of_k, self.block)
        own = jnp.clip(first + jnp.arange(queries.shape[0], dtype=jnp.int32), 0, _last(filled_k))
        fit = matmul(matmul(_mean(queries, filled), sort.astype(queries.dtype)), _mean(keys, filled_k).T)
        fit = fit / (q.shape[1] ** 0.5 * self.temperature)
        sorting = balance(fit, filled.any(axis=1), filled_k.any(axis=1), self.steps)
        y = _attend(queries, keys, values, filled_k, own, sorting)
        return y.reshape(-1, v.shape[1])[shift + ranks(of_q)].astype(v.dtype)

    def cost(self, T, S, K, V, block=None):
        """Counts each query against two blocks, and every block of keys in every sorted block."""
        A, B, R = 1 + -(-(T - 1) // self.block), -(-S // self.block), self.block
        pairs = A * R * 2 * R * (2 * K + 2 * V + 5) + 2 * A * B * R * (K + V + 1)
        return Cost(
            flops=pairs + A * K * (2 * K + 2 * B),
            bytes=moved(T, S, K, V),
            state_bytes=0,
        )


def _stand(rows, columns, i, j, block) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Returns the block of the first query and its place in that block, counted back from the last query."""
    last = jnp.max(jnp.where(rows, jnp.asarray(i), jnp.iinfo(jnp.int32).min))
    place = jnp.sum(columns & (jnp.asarray(j) <= last), dtype=jnp.int32) - jnp.sum(rows, dtype=jnp.int32)
    return place // block, place % block


def _cut(x, keep, order, block, shift=None) -> tuple[Float[Array, "N block K"], Bool[Array, "N block"]]:
    """Returns the kept rows of x in order, split into blocks, and which places are filled.

    The first row is at place `shift` of the first block.
    """
    room = x.shape[0] + (0 if shift is None else block - 1)
    place = jnp.arange(-(-room // block) * block, dtype=jnp.int32) - (0 if shift is None else shift)
    filled = (place >= 0) & (place < jnp.sum(keep, dtype=jnp.int32))
    rows = jnp.where(filled[:, None], x[order[jnp.where(filled, place, 0)]], 0)
    return rows.reshape(-1, block, x.shape[1]), filled.reshape(-1, block)


def _mean(x, filled) -> Float[Array, "N K"]:
    """Returns the mean of each block."""
    return divide(jnp.sum(x, axis=1), jnp.sum(filled, axis=1, dtype=x.dtype)[:, None])


def _last(filled_k) -> Int[Array, ""]:
    """Returns the index of the last block that holds a key."""
    return jnp.maximum(jnp.sum(filled_k.any(axis=1), dtype=jnp.int32) - 1, 0)


def _attend(
    q: Float[Array, "A R K"],
    k: Float[Array, "B R K"],
    v: Float[Array, "B R V"],
    filled_k: Bool[Array, "B R"],
    own: Int[Array, " A"],
    sorting: Float[Array, "A B"],
) -> Float[Array, "A R V"]:
    """Attends from every block of queries to its own block of keys and to the sorted one.

    Args:
        q: queries by blocks.
        k: keys by blocks.
        v: values by blocks.
        filled_k: which places of the key blocks are filled.
        own: index of each query block's own key block.
        sorting: the balanced matrix S.
    """
    share = matmul(sorting, filled_k.astype(sorting.dtype))
    held = share > FAINT
    share = jnp.where(held, share, 0)
    near, far = k[own], _sorted(sorting, k, share)
    scores = jax.vmap(scaled_dot)(q, jnp.concatenate([near, far], axis=1))
    # The logarithm of a share, added to the score, multiplies the softmax weight by that share.
    weigh = jnp.log(jnp.where(held, share, 1))
    weigh = jnp.concatenate([jnp.zeros_like(weigh), weigh], axis=1)
    allowed = jnp.concatenate([filled_k[own], held], axis=1)[:, None, :]
    weights = jax.vmap(masked_softmax)(scores + weigh[:, None, :], jnp.broadcast_to(allowed, scores.shape))
    return jax.vmap(matmul)(weights, jnp.concatenate([v[own], _sorted(sorting, v, share)], axis=1))


def _sorted(sorting, x, share):
    """Returns, for each place, the mean of x over blocks, weighted by `sorting` and divided by `share`."""
    blended = matmul(sorting, x.reshape(x.shape[0], -1)).reshape(sorting.shape[0], *x.shape[1:])
    return jax.vmap(divide)(blended, share[:, :, None])
