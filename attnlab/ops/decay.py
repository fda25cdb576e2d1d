"""A state that fades as keys and values are added: S_t = diag(a_t) S_{t-1} + k_tᵀ v_t, y_t = q_t S_t.

By chunks: within one, token t reads token s by the gates between them; from one to the next goes the state
(Yang et al. 2023, eq. 4-6; for one gate a token, Dao and Gu 2024, section 6).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops import chunks
from attnlab.ops.gate_products import GateSums, chunk_sums, dyadic_sums, gated_scores
from attnlab.ops.linear import Visibility, apply_weights


def causal(
    state: Float[Array, "K V"],
    q: Float[Array, "T K"],
    k: Float[Array, "T K"],
    v: Float[Array, "T V"],
    log_gates: Float[Array, "T G"],
    block: Any,
    size: int,
) -> tuple[Float[Array, "T V"], Float[Array, "K V"]]:
    """T tokens after a state, in chunks of `size`, and the state after them; in the precision of the state.

    log_gates ≤ 0, one a token (G = 1) or one a channel (G = K). `block` is the tokens' place in time, a block of the
    clock: padding, where k is zero, does not fade either, and no run of tokens reaches another.
    """
    fade = apply_weights(log_gates, block.keep[:, None])
    return chunks.scan_chunks(_absorb, state, (q, k, v, fade), block, size)


def _absorb(state, columns, reach: Visibility):
    q, k, v, log_gates = columns
    parts = dyadic_sums(log_gates)
    (near,), sums = gated_scores((q,), k, parts, reach.pairs), chunk_sums(parts, q.shape[1])
    new = jnp.swapaxes(gated_keys(k, sums, reach), 1, 2) @ v

    def advance(state, here):
        keep, new = here
        return keep * state + new, state

    state, before = jax.lax.scan(advance, state, (chunk_decay(sums, reach), new))
    return near @ v + gated_queries(q, sums, reach) @ before, state


def gated_queries(q: Float[Array, "N C K"], sums: GateSums, reach: Visibility) -> Float[Array, "N C K"]:
    """What a query makes of the state before its chunk: q_t by the gates up to t."""
    return apply_weights(q * jnp.exp(sums.from_start), reach.state_visible[:, :, None])


def gated_keys(k: Float[Array, "N C K"], sums: GateSums, reach: Visibility) -> Float[Array, "N C K"]:
    """What a key makes of the state after its chunk: k_t by the gates after t."""
    return apply_weights(k * jnp.exp(sums.to_end), reach.enters_state[:, :, None])


def chunk_decay(sums: GateSums, reach: Visibility) -> Float[Array, "N G 1"]:
    """What a chunk leaves of the state: the product of its gates."""
    return apply_weights(jnp.exp(jnp.swapaxes(sums.from_start[:, -1:], 1, 2)), reach.state_survives[:, None, None])


def flops(T: int, K: int, V: int, size: int, G: int = 1) -> int:
    """Of T tokens in chunks of `size`: products, and the sums of gates and what they multiply."""
    size = chunks.chunk_size(size, T)
    levels = (size - 1).bit_length()
    pairs = 2 * size * K + 4 * size if G == 1 else size * K + 6 * K * levels
    return T * (pairs + 2 * size * V + 4 * K * V + 4 * K)
