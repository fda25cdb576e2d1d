"""Linear attention with a state that decays: S_t = diag(a_t) S_{t-1} + k_tᵀ v_t, y_t = q_t S_t.

It is computed by chunks. Within a chunk, token t reads token s through the gates between them. From one chunk to the
next, the state is passed on (Yang et al. 2023, eq. 4-6; for one gate per token, Dao and Gu 2024, section 6).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops import chunks
from attnlab.ops.gate_products import GateSums, chunk_sums, dyadic_sums, gated_scores
from attnlab.ops.linear import Visibility, apply_weights
from attnlab.ops.token_block import TokenBlock


def causal(
    state: Float[Array, "K V"],
    q: Float[Array, "T K"],
    k: Float[Array, "T K"],
    v: Float[Array, "T V"],
    log_gates: Float[Array, "T G"],
    block: TokenBlock,
    size: int,
) -> tuple[Float[Array, "T V"], Float[Array, "K V"]]:
    """Processes T tokens after a state, in chunks of `size`, in the precision of the state.

    Padding, where k must be zero, does not decay the state. No segment sees another.

    Args:
      state: S before the tokens [K V].
      q: queries [T K].
      k: keys [T K].
      v: values [T V].
      log_gates: logarithms of the gates a, at most 0; one per token [T 1] or one per channel [T K].
      block: the `TokenBlock` of the tokens: their positions, segments and padding.
      size: tokens per chunk.

    Returns:
      The outputs [T V] and the state after the tokens [K V].
    """
    fade = apply_weights(log_gates, block.keep[:, None])
    return chunks.scan_chunks(_update_chunks, state, (q, k, v, fade), block, size)


def _update_chunks(state, columns, visible: Visibility):
    """Processes several chunks [N C …] at once; only the recurrence of states is sequential."""
    q, k, v, log_gates = columns
    parts = dyadic_sums(log_gates)
    (near,), sums = gated_scores((q,), k, parts, visible.pairs), chunk_sums(parts, q.shape[1])
    new = jnp.swapaxes(gated_keys(k, sums, visible), 1, 2) @ v

    def advance(state, here):
        keep, new = here
        return keep * state + new, state

    state, before = jax.lax.scan(advance, state, (chunk_decay(sums, visible), new))
    return near @ v + gated_queries(q, sums, visible) @ before, state


def gated_queries(q: Float[Array, "N C K"], sums: GateSums, visible: Visibility) -> Float[Array, "N C K"]:
    """Returns queries that read the state before their chunk: q_t times the gates of the chunk up to t.

    Args:
      q: queries of N chunks [N C K].
      sums: sums of the log gates of each chunk, from `chunk_sums`.
      visible: the `Visibility` of the chunks. Queries that do not see the state become zero.
    """
    return apply_weights(q * jnp.exp(sums.from_start), visible.state_visible[:, :, None])


def gated_keys(k: Float[Array, "N C K"], sums: GateSums, visible: Visibility) -> Float[Array, "N C K"]:
    """Returns keys as they enter the state after their chunk: k_t times the gates after t.

    Args:
      k: keys of N chunks [N C K].
      sums: sums of the log gates of each chunk, from `chunk_sums`.
      visible: the `Visibility` of the chunks. Keys that do not enter the state become zero.
    """
    return apply_weights(k * jnp.exp(sums.to_end), visible.enters_state[:, :, None])


def chunk_decay(sums: GateSums, visible: Visibility) -> Float[Array, "N G 1"]:
    """Returns the factor by which a chunk decays the state: the product of its gates."""
    return apply_weights(jnp.exp(jnp.swapaxes(sums.from_start[:, -1:], 1, 2)), visible.state_survives[:, None, None])


def flops(T: int, K: int, V: int, size: int, G: int = 1) -> int:
    """Returns the operations of T tokens in chunks of `size`.

    They are those of the products, of the sums of gates, and of the multiplications by gates.

    Args:
      T: number of tokens.
      K: width of keys.
      V: width of values.
      size: tokens per chunk.
      G: gates per token, 1 or K. Defaults to 1.
    """
    size = chunks.chunk_size(size, T)
    levels = (size - 1).bit_length()
    pairs = 2 * size * K + 4 * size if G == 1 else size * K + 6 * K * levels
    return T * (pairs + 2 * size * V + 4 * K * V + 4 * K)
