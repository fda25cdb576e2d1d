"""The delta rule, in which a write first erases what the state holds for its key.

S_t = (I − k_tᵀ e_t) diag(a_t) S_{t-1} + k_tᵀ v_t

e_t is the key that is erased. In the delta rule it is β_t k_t, and the value is β_t times that of the token. Token t
adds k_tᵀ u_t to the state, with u_t = v_t − e_t diag(a_t) S_{t-1}. So y_t = q_t S_t reads a decayed sum of u, as gated
linear attention reads one of v. Within a chunk all u follow from one triangular system (Yang, Wang, Zhang, Shen and Kim
2024, eq. 8-11; with gates, Yang, Kautz and Hatamizadeh 2024, section 3.3).
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
    erased: Float[Array, "T K"],
    log_gates: Float[Array, "T G"],
    block: TokenBlock,
    size: int,
) -> tuple[Float[Array, "T V"], Float[Array, "K V"]]:
    """Processes T tokens after a state, in chunks of `size`, in the precision of the state.

    It is stable if no write makes the state longer: for e = β k with β in 0 … 2 and keys of norm at most 1.

    Args:
      state: S before the tokens [K V].
      q: queries [T K].
      k: keys [T K].
      v: values as they are written [T V].
      erased: keys e as they are erased [T K].
      log_gates: logarithms of the gates a, at most 0; one per token [T 1] or one per channel [T K].
      block: the `TokenBlock` of the tokens: their positions, segments and padding.
      size: tokens per chunk.

    Returns:
      The outputs [T V] and the state after the tokens [K V].
    """
    v, erased, fade = (apply_weights(x, block.keep[:, None]) for x in (v, erased, log_gates))
    return chunks.scan_chunks(_update_chunks, state, (q, k, v, erased, fade), block, size)


def _update_chunks(state, columns, visible: Visibility):
    """Processes several chunks [N C …] at once; only the products with the state are sequential."""
    q, k, v, erased, log_gates = columns
    parts = dyadic_sums(log_gates)
    # near: gated products of queries and keys; own: of erased keys and keys. Both are zero for later keys.
    (near, own), sums = gated_scores((q, erased), k, parts, visible.pairs), chunk_sums(parts, q.shape[1])
    # u = (I + tril(own))⁻¹ (v − reads(e) S) is linear in the state S. So everything but the last product is computed
    # for all chunks at once, before the scan.
    solve = inverse(own)
    steps = (
        solve @ v,
        solve @ gated_queries(erased, sums, visible),
        jnp.swapaxes(gated_keys(k, sums, visible), 1, 2),
        chunk_decay(sums, visible),
    )

    def advance(state, here):
        ahead, read, write, keep = here
        u = ahead - read @ state
        return keep * state + write @ u, (state, u)

    state, (before, u) = jax.lax.scan(advance, state, steps)
    return near @ u + gated_queries(q, sums, visible) @ before, state


def flops(T: int, K: int, V: int, size: int, G: int = 1) -> int:
    """Returns the operations of T tokens in chunks of `size`.

    They are those of `decay.flops`, of the inverse, and of the erasing.

    Args:
      T: number of tokens.
      K: width of keys.
      V: width of values.
      size: tokens per chunk.
      G: gates per token, 1 or K. Defaults to 1.
    """
    size = chunks.chunk_size(size, T)
    inverse = size * size * 2 // 3 + 8 * size
    return decay.flops(T, K, V, size, G) + T * (inverse + 2 * size * (2 * K + V) + 2 * K * V)
