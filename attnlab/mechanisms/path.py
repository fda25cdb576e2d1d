"""PaTH attention: softmax attention with positions that depend on the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import jax
import jax.numpy as jnp

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, cached, moved
from attnlab.mechanisms.pairwise import CausalPairwise
from attnlab.mechanisms.recurrent import update_by_blocks
from attnlab.ops.counts import check_counts
from attnlab.ops.layer import l2_normalize
from attnlab.ops.precision import accumulation_dtype, matmul
from attnlab.ops.softmax import masked_softmax
from attnlab.ops.triangle import inverse


@final
@dataclass(frozen=True)
class Path(CausalPairwise):
    """Softmax attention whose keys are transformed by every token that follows (PaTH).

    y_t = Σ_j softmax_j(q_t H_t H_{t-1} … H_{j+1} k_jᵀ / √K) v_j, H = I − β wᵀw, β = 2 sigmoid(beta), ‖w‖ = 1

    The extra inputs `path` (w) and `beta` are one vector [K] and one number per token. The products of Householder-like
    matrices take the place of rotary positions. The decoding state is a cache of values and of keys, which every new
    token transforms. In the authors' layer, w comes from a map of rank 32 and a convolution over three tokens. The rank
    belongs to the module (`MultiHead.extra_rank`), and the convolution is left out.

    Raises:
        ValueError: if `block` is below 1.

    Source: Yang et al. 2025, eq. 2 (arXiv 2505.16381).
    """

    block: int = 64
    """Number of tokens whose transformations are applied together."""
    epsilon: float = 1e-6
    """ε in the normalisation of w, x / √(‖x‖² + ε)."""
    traits = Traits(non_causal=False, bias=True, position_dependent=True)

    def __post_init__(self):
        check_counts(block=self.block)

    @property
    def tokens(self):
        """`path`: direction w of the transformation. `beta`: its strength, before the sigmoid."""
        return {"path": ("K",), "beta": ()}

    def weights(self, q, k, allowed, *, i, j, bias=None, path, beta):
        """Returns weights [T T] of a whole sequence, in at least float32."""
        q, k, w, strength = self._ready(q, k, path, beta)
        scores, _ = self._scores(q, k, k[:0], w, strength)
        return self._softmax(scores, q, allowed, i, j, bias)

    def attend_causal(self, q, k, v, block, *, bias=None, **extra):
        """Attends causally, block after block."""
        return update_by_blocks(self, self.block, q, k, v, block, bias=bias, **extra)

    def init_memory(self, length, K, V, dtype):
        """Returns an empty cache, whose keys have at least float32, because they are changed again and again."""
        cache = super().init_memory(length, K, V, dtype)
        return replace(cache, k=cache.k.astype(accumulation_dtype(dtype)), tokens={})

    def update(self, memory, q, k, v, block, *, bias=None, path, beta):
        """Transforms the cached keys by the new tokens, and attends to all keys."""
        q, k, w, strength = self._ready(q, k, path, beta)
        # Padding transforms no key, and neither does a token that does not fit into the cache.
        slot = memory.count + jnp.cumsum(jnp.asarray(block.keep), dtype=jnp.int32) - 1
        kept = jnp.asarray(block.keep) & (slot < memory.k.shape[0])
        strength = jnp.where(kept, strength, 0)
        scores, (old, new) = self._scores(q, k, memory.k.astype(q.dtype), w, strength)
        cache, room, visible = replace(memory, k=old.astype(memory.k.dtype)).write(new, v, {}, block)
        # Scores of new keys belong to the slots in which the cache has put them.
        target = jnp.where(kept, slot, cache.k.shape[0])
        scores = scores[:, : len(old)].at[:, target].set(scores[:, len(old) :], mode="drop")
        weights = self._softmax(scores, q, visible, block.i, cache.i, bias)
        y = matmul(weights.astype(cache.v.dtype), cache.v).astype(v.dtype)
        # A write past the end cannot raise inside a trace. Its output becomes NaN instead.
        return jnp.where(room[:, None], y, jnp.nan), cache

    def cost(self, T, S, K, V, block=None):
        """Counts two products per pair, those of the transformations, and five operations per pair for the softmax."""
        size = min(T, self.block if block is None else block)
        return Cost(
            flops=T * S * (2 * K + 2 * V + 5) + T * S * (4 * size + 4 * K) + T * size * (6 * K + size),
            bytes=moved(T, S, K, V) + 4 * S * (K + 1),
            state_bytes=cached(S, K, V),
        )

    def _ready(self, q, k, path, beta):
        """Returns q, k, the unit directions and the strengths of the transformations, in at least float32."""
        q, k, path, beta = (x.astype(accumulation_dtype(q.dtype)) for x in (q, k, path, beta))
        return q, k, l2_normalize(path, self.epsilon), 2 * jax.nn.sigmoid(beta)

    def _scores(self, q, k, old, w, strength):
        """Returns the scores of T queries against N older and T new keys, and both sets of keys, transformed.

        H_t … H_1 = I − Σ_l w_lᵀ u_l, where u follows from a triangular system. A key is only changed by later tokens.
        """
        N, T = len(old), len(k)
        keys = jnp.concatenate([old, k])
        shrunk = strength[:, None] * w
        later = jnp.arange(T, dtype=jnp.int32)[:, None] > jnp.arange(-N, T, dtype=jnp.int32)[None, :]
        solve = inverse((shrunk @ w.T)[None])[0]
        change = solve @ jnp.where(later, shrunk @ keys.T, 0)
        scores = q @ keys.T - jnp.tril(q @ w.T) @ change
        keys = keys - change.T @ w
        return scores, (keys[:N], keys[N:])

    def _softmax(self, scores, q, allowed, i, j, bias):
        """Returns the softmax of scaled scores."""
        scores = scores * q.shape[1] ** -0.5
        return masked_softmax(scores if bias is None else scores + bias(q, i, j).astype(scores.dtype), allowed)
