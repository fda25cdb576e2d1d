"""Decaying linear attention with a weight per level of a Fenwick tree, in O(T log T).

y_t = Σ_{s≤t} λ_t[level(t, s)] a_{s+1} … a_t (q_t·k_s) v_s. The level is the bit length of t xor s (0 for 0, 2 for 2 and
3): 0 for the token itself, and larger for earlier tokens, in blocks of 1, 2, 4, … tokens. The tokens before t are held
as one sum per set bit of t. All tokens of a sum have the same level for every later query (Guo et al. 2025, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab.ops.gate_products import by_tokens, chunk_sums, dyadic_sums
from attnlab.ops.linear import Visibility, apply_weights
from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.tree import pytree


@pytree
@dataclass(frozen=True)
class LevelSums:
    """The sums of earlier tokens by level, and the number of these tokens."""

    sums: Float[Array, "L K V"]
    """Sum of keys and values of each level [L K V]. Level 0, a token itself, is always zero."""
    count: Int[Array, ""]
    """Number of tokens that are summed."""


def bit_length(x: Int[ArrayOrNumpy, "..."]) -> Int[Array, "..."]:
    """Returns the bit length of numbers of 0 or more: 0 for 0, 1 for 1, 2 for 2 and 3, …"""
    return 32 - jax.lax.clz(jnp.asarray(x, jnp.int32))


def update_block(
    state: LevelSums,
    q: Float[Array, "T K"],
    k: Float[Array, "T K"],
    v: Float[Array, "T V"],
    log_gates: Float[Array, "T 1"],
    scales: Float[Array, "T L"],
    index: Int[Array, " T"],
    visible: Visibility,
) -> tuple[Float[Array, "T V"], LevelSums]:
    """Processes one block of T tokens after a state, computing all pairs within the block.

    Args:
      state: sums of the tokens before the block.
      q: queries [T K].
      k: keys [T K], zero for padding.
      v: values [T V].
      log_gates: logarithms of the gates a, at most 0, zero for padding [T 1].
      scales: weight λ of each level [T L].
      index: number of kept tokens before each token in its run [T].
      visible: visibility of the block.

    Returns:
      The outputs [T V], and the state after the block.
    """
    T, L = scales.shape
    parts = dyadic_sums(log_gates[None])
    sums = chunk_sums(parts, T)
    level = jnp.minimum(bit_length(index[:, None] ^ index[None, :]), L - 1)
    pairs = jnp.where(
        visible.pairs, jnp.exp(by_tokens(parts)[0, :T, :T]) * jnp.take_along_axis(scales, level, axis=1), 0
    )
    # The sums of the state belong to the bits of its count. Of a later query, their level is at least that of the
    # count.
    own = jnp.arange(L, dtype=jnp.int32)
    moved = lambda later: jnp.minimum(jnp.maximum(own[None, :], bit_length(later ^ state.count)[:, None]), L - 1)
    seen = jnp.take_along_axis(scales, moved(index), axis=1) * jnp.exp(sums.from_start[0])
    seen = apply_weights(seen, visible.state_visible[:, None])
    y = (pairs * (q @ k.T)) @ v + jnp.einsum("tk,lkv,tl->tv", q, state.sums, seen)

    new = apply_weights(jnp.exp(sums.to_end[0]), visible.enters_state[:, None])
    entered = jnp.sum(jnp.asarray(visible.enters_state), dtype=jnp.int32)
    count = jnp.where(visible.state_survives, state.count, 0) + entered
    one_hot = lambda level: (level[:, None] == own[None, :]).astype(q.dtype)
    kept = apply_weights(jnp.exp(sums.from_start[0, -1, 0]), visible.state_survives)
    level = jnp.minimum(bit_length(index ^ count), L - 1)
    written = jnp.einsum("tl,tk,tv->lkv", one_hot(level) * new, k, v)
    merged = jnp.einsum("mkv,ml->lkv", kept * state.sums, one_hot(moved(count[None])[0]))
    return y, LevelSums(merged + written, count)


def flops(T: int, K: int, V: int, L: int, size: int) -> int:
    """Returns the operations of T tokens in blocks of `size`, with L levels.

    Args:
      T: number of tokens.
      K: width of keys.
      V: width of values.
      L: number of levels.
      size: tokens per block.
    """
    size = max(1, min(size, T))
    blocks = -(-T // size)
    return T * (2 * size * (K + V) + 4 * size + 4 * L * K * V) + blocks * 2 * L * L * K * V
