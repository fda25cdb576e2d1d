"""Regression of values on keys, solved anew at every token: y_t = q_t (H_t + Λ)⁻¹ G_t.

H_t = a_t H_{t-1} + β_t k_tᵀ k_t and G_t = a_t G_{t-1} + β_t k_tᵀ v_t are held side by side, as one state [K K+V] (von
Oswald et al. 2025, eq. 6-8).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops import chunks, positive_definite
from attnlab.ops.decay import chunk_decay, gated_keys
from attnlab.ops.gate_products import by_tokens, chunk_sums, dyadic_sums
from attnlab.ops.linear import Visibility, apply_weights
from attnlab.ops.token_block import TokenBlock


def causal(
    state: Float[Array, "K W"],
    q: Float[Array, "T K"],
    k: Float[Array, "T K"],
    v: Float[Array, "T V"],
    log_gates: Float[Array, "T 1"],
    beta: Float[Array, "T 1"],
    ridge: Float[Array, " K"],
    block: TokenBlock,
    size: int,
) -> tuple[Float[Array, "T V"], Float[Array, "K W"]]:
    """Processes T tokens after a state, in chunks of `size`, in the precision of the state.

    Args:
      state: H and G before the tokens [K K+V].
      q: queries [T K].
      k: keys [T K].
      v: values [T V].
      log_gates: logarithms of the gates a, at most 0 [T 1].
      beta: strength of each write [T 1].
      ridge: diagonal of Λ, positive [K].
      block: the `TokenBlock` of the tokens: their positions, segments and padding.
      size: tokens per chunk, whose matrices are held at once.

    Returns:
      The outputs [T V] and the state after the tokens [K K+V].
    """
    fade, beta = (apply_weights(x, block.keep[:, None]) for x in (log_gates, beta))
    ridge = ridge.astype(state.dtype)

    def update_chunks(state, columns, visible: Visibility):
        q, k, both, log_gates, beta = columns
        N, C, K = q.shape
        parts = dyadic_sums(log_gates)
        sums = chunk_sums(parts, C)
        written = beta * k
        new = jnp.swapaxes(gated_keys(written, sums, visible), 1, 2) @ both

        def advance(state, here):
            keep, new = here
            return keep * state + new, state

        state, before = jax.lax.scan(advance, state, (chunk_decay(sums, visible), new))
        near = jnp.where(visible.pairs, jnp.exp(by_tokens(parts)[:, :C, :C]), 0)
        faded = apply_weights(jnp.exp(sums.from_start), visible.state_visible[:, :, None])
        products = (written[:, :, :, None] * both[:, :, None, :]).reshape(N, C, -1)
        # The state at every token: the sums within the chunk, and the state before it.
        states = (near @ products).reshape(N, C, K, -1) + faded[:, :, :, None] * before[:, None]
        H, G = states[..., :K] + jnp.diag(ridge)[None, None], states[..., K:]
        return jnp.sum(jax.vmap(jax.vmap(positive_definite.solve))(H, q)[..., None] * G, axis=2), state

    return chunks.scan_chunks(
        update_chunks, state, (q, k, jnp.concatenate([k, v.astype(k.dtype)], axis=1), fade, beta), block, size
    )


def flops(T: int, K: int, V: int, size: int) -> int:
    """Returns the operations of T tokens in chunks of `size`: the states at every token, and the solves.

    Args:
      T: number of tokens.
      K: width of keys.
      V: width of values.
      size: tokens per chunk.
    """
    size = chunks.chunk_size(size, T)
    return T * (K * (K + V) * (2 * size + 5) + positive_definite.flops(K) + 2 * K * V)
