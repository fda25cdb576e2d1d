"""Linear attention with exponential gates: S_t = a_t S_{t-1} + e^{w_t} k_tᵀ v_t, y_t = q_t S_t / max(|q_t·n_t|, 1).

n_t is the sum S_t for values of one. e^{w} may be any positive number. Sums are therefore held divided by e^{m}, where
m is the largest exponent of their terms, and at least 0. The result does not depend on m (Beck et al. 2024, eq. 15-27).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops import chunks, decay
from attnlab.ops.gate_products import by_tokens, chunk_sums, dyadic_sums
from attnlab.ops.linear import Visibility, append_ones, apply_weights
from attnlab.ops.token_block import TokenBlock

State = tuple[Float[Array, "K W"], Float[Array, ""]]
"""The sums of values and, in the last column, of ones, divided by e^{m}; and m."""


def empty(K: int, V: int, dtype) -> State:
    """Returns the state before the first token.

    Args:
      K: width of keys.
      V: width of values.
      dtype: dtype of the sums.

    Returns:
      Sums of zeros [K V+1], and the exponent m = 0.
    """
    return jnp.zeros((K, V + 1), dtype), jnp.zeros((), dtype)


def causal(
    state: State,
    q: Float[Array, "T K"],
    k: Float[Array, "T K"],
    v: Float[Array, "T V"],
    log_gates: Float[Array, "T 1"],
    log_writes: Float[Array, "T 1"],
    block: TokenBlock,
    size: int,
) -> tuple[Float[Array, "T V"], State]:
    """Processes T tokens after a state, in chunks of `size`, in the precision of the state.

    Args:
      state: state before the tokens, from `empty` or an earlier call.
      q: queries [T K].
      k: keys [T K].
      v: values [T V].
      log_gates: logarithms of the forget gates a, at most 0 [T 1].
      log_writes: exponents w of the input gates, any real numbers [T 1].
      block: the `TokenBlock` of the tokens: their positions, segments and padding.
      size: tokens per chunk.

    Returns:
      The outputs [T V] and the state after the tokens.
    """
    fade = apply_weights(log_gates, block.keep[:, None])
    return chunks.scan_chunks(_update_chunks, state, (q, k, append_ones(v), fade, log_writes), block, size)


def _update_chunks(state, columns, visible: Visibility):
    """Processes several chunks [N C …] at once; only the recurrence of states is sequential."""
    q, k, v, log_gates, log_writes = columns
    C = q.shape[1]
    parts = dyadic_sums(log_gates)
    sums = chunk_sums(parts, C)
    hide = lambda exponents, weights: jnp.where(weights, exponents, -jnp.inf)
    pairs = hide(by_tokens(parts)[:, :C, :C] + jnp.swapaxes(log_writes, 1, 2), visible.pairs)
    from_state = hide(sums.from_start[:, :, 0], visible.state_visible)
    writes = hide((sums.to_end + log_writes)[:, :, 0], visible.enters_state)
    kept = hide(sums.from_start[:, -1, 0], visible.state_survives)
    # No gradient flows through the largest exponents, because the result does not depend on them.
    top = lambda exponents: jax.lax.stop_gradient(jnp.max(exponents, axis=-1, initial=0))
    near, new = top(pairs), top(writes)

    def peaks(m, here):
        kept, new = here
        return jnp.maximum(jnp.maximum(m + kept, 0), new), m

    m, before = jax.lax.scan(peaks, state[1], (jax.lax.stop_gradient(kept), new))
    after = jnp.append(before[1:], m)
    written = jnp.swapaxes(k * jnp.exp(writes - after[:, None])[:, :, None], 1, 2) @ v

    def advance(sums, here):
        keep, new = here
        return keep * sums + new, sums

    total, sums_before = jax.lax.scan(advance, state[0], (jnp.exp(kept + before - after)[:, None, None], written))
    level = jnp.maximum(near, before[:, None] + jax.lax.stop_gradient(from_state))
    shares = jnp.exp(pairs - level[:, :, None]) * (q @ jnp.swapaxes(k, 1, 2))
    ahead = q * jnp.exp(from_state + before[:, None] - level)[:, :, None]
    y = shares @ v + ahead @ sums_before
    return y[:, :, :-1] / jnp.maximum(jnp.abs(y[:, :, -1:]), jnp.exp(-level)[:, :, None]), (total, m)


def flops(T: int, K: int, V: int, size: int) -> int:
    """Returns the operations of T tokens in chunks of `size`: a decayed sum of V + 1 values, and the division.

    Args:
      T: number of tokens.
      K: width of keys.
      V: width of values.
      size: tokens per chunk.
    """
    return decay.flops(T, K, V + 1, size) + T * (2 * chunks.chunk_size(size, T) + V)
