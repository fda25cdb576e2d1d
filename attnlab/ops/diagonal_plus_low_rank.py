"""A state that decays, is changed by one read of itself, and is written to, per token.

S_t = diag(a_t) S_{t-1} + b_tᵀ (c_t S_{t-1}) + k_tᵀ v_t, y_t = q_t S_t

The transition is diagonal plus a matrix of rank one. The delta rule is the case b = −β k, c = k ⊙ a. Token t writes
b_tᵀ u_t with u_t = c_t S_{t-1}. Within a chunk all u follow from one triangular system (Peng et al. 2025, RWKV-7,
appendix).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops import chunks, decay
from attnlab.ops.decay import chunk_decay, gated_keys, gated_queries
from attnlab.ops.gate_products import chunk_sums, dyadic_sums, gated_scores
from attnlab.ops.linear import Visibility, apply_weights
from attnlab.ops.token_block import TokenBlock
from attnlab.ops.triangle import inverse


def causal(
    state: Float[Array, "K V"],
    q: Float[Array, "T K"],
    k: Float[Array, "T K"],
    v: Float[Array, "T V"],
    b: Float[Array, "T K"],
    c: Float[Array, "T K"],
    log_gates: Float[Array, "T K"],
    block: TokenBlock,
    size: int,
) -> tuple[Float[Array, "T V"], Float[Array, "K V"]]:
    """Processes T tokens after a state, in chunks of `size`, in the precision of the state.

    Args:
      state: S before the tokens [K V].
      q: queries [T K].
      k: keys [T K].
      v: values [T V].
      b: keys under which what was read is written [T K].
      c: keys with which the state is read before the token [T K].
      log_gates: logarithms of the gates a, at most 0 and of moderate size, because c is divided by a [T K].
      block: the `TokenBlock` of the tokens: their positions, segments and padding.
      size: tokens per chunk.

    Returns:
      The outputs [T V] and the state after the tokens [K V].
    """
    k, b, c, fade = (apply_weights(x, block.keep[:, None]) for x in (k, b, c, log_gates))
    # The state before token t, read with c, is the state decayed up to t, read with c / a.
    return chunks.scan_chunks(_update_chunks, state, (q, k, v, b, c * jnp.exp(-fade), fade), block, size)


def _update_chunks(state, columns, visible: Visibility):
    """Processes several chunks [N C …] at once; only the products with the state are sequential."""
    q, k, v, b, c, log_gates = columns
    parts = dyadic_sums(log_gates)
    # Of queries and of reads: products with what was written under k, and under b. A token does not read itself.
    (near, read), sums = gated_scores((q, c), k, parts, visible.pairs), chunk_sums(parts, q.shape[1])
    near_b, read_b = gated_scores((q, c), b, parts, visible.pairs)
    solve = inverse(-read_b)
    steps = (
        solve @ (jnp.tril(read, -1) @ v),
        solve @ gated_queries(c, sums, visible),
        jnp.swapaxes(gated_keys(b, sums, visible), 1, 2),
        jnp.swapaxes(gated_keys(k, sums, visible), 1, 2) @ v,
        chunk_decay(sums, visible),
    )

    def advance(state, here):
        ahead, read, write, new, keep = here
        u = ahead + read @ state
        return keep * state + new + write @ u, (state, u)

    state, (before, u) = jax.lax.scan(advance, state, steps)
    return near @ v + near_b @ u + gated_queries(q, sums, visible) @ before, state


def flops(T: int, K: int, V: int, size: int) -> int:
    """Returns the operations of T tokens in chunks of `size`: two decayed sums, the reads, and the inverse.

    Args:
      T: number of tokens.
      K: width of keys.
      V: width of values.
      size: tokens per chunk.
    """
    size = chunks.chunk_size(size, T)
    inverse = size * size * 2 // 3 + 8 * size
    return 2 * decay.flops(T, K, V, size, K) + T * (inverse + 2 * size * (3 * K + 2 * V) + 2 * K * V)
