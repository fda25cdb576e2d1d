"""A memory of slots that decay at rates of their own: S_t = S_{t-1} diag(a_t) + k_tᵀ s_t, y_t = q_t S_t.

In gated linear attention the gates belong to the keys. Here they belong to what is read, one per slot. Within a chunk,
the pairs between the halves of each part are one product, with gates from the border to the query, and from the key to
the border, as in `attnlab.ops.gate_products` (Zhang et al. 2024, section 3.2).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops import chunks
from attnlab.ops.gate_products import GateSums, chunk_sums, dyadic_sums
from attnlab.ops.linear import Visibility, apply_weights
from attnlab.ops.token_block import TokenBlock


def causal(
    state: Float[Array, "K M"],
    q: Float[Array, "T K"],
    k: Float[Array, "T K"],
    written: Float[Array, "T M"],
    log_gates: Float[Array, "T M"],
    block: TokenBlock,
    size: int,
) -> tuple[Float[Array, "T M"], Float[Array, "K M"]]:
    """Processes T tokens after a state, in chunks of `size`, in the precision of the state.

    Args:
      state: S before the tokens [K M].
      q: queries [T K].
      k: keys [T K].
      written: what is written to the M slots [T M].
      log_gates: logarithms of the gates a, at most 0, one per slot [T M].
      block: the `TokenBlock` of the tokens: their positions, segments and padding.
      size: tokens per chunk.

    Returns:
      What is read from the slots [T M], and the state after the tokens [K M].
    """
    fade = apply_weights(log_gates, block.keep[:, None])
    return chunks.scan_chunks(_update_chunks, state, (q, k, written, fade), block, size)


def _update_chunks(state, columns, visible: Visibility):
    """Processes several chunks [N C …] at once; only the recurrence of states is sequential."""
    q, k, written, log_gates = columns
    C = q.shape[1]
    parts = dyadic_sums(log_gates)
    sums = chunk_sums(parts, C)
    scores = jnp.where(visible.pairs, q @ jnp.swapaxes(k, 1, 2), 0)
    new = jnp.swapaxes(apply_weights(k, visible.enters_state[:, :, None]), 1, 2) @ (written * jnp.exp(sums.to_end))
    keep = apply_weights(jnp.exp(sums.from_start[:, -1:]), visible.state_survives[:, None, None])

    def advance(state, here):
        keep, new = here
        return keep * state + new, state

    state, before = jax.lax.scan(advance, state, (keep, new))
    faded = apply_weights(jnp.exp(sums.from_start), visible.state_visible[:, :, None])
    return _near(scores, written, parts) + faded * (q @ before), state


def _near(
    scores: Float[Array, "N C C"], written: Float[Array, "N C M"], parts: list[GateSums]
) -> Float[Array, "N C M"]:
    """Returns Σ_{s≤t} scores_ts written_s times the gates after s up to t, within each chunk."""
    N, C, M = written.shape
    size = parts[-1].from_start.shape[1]
    more = size - C
    scores = jnp.pad(scores, ((0, 0), (0, more), (0, more)))
    written = jnp.pad(written, ((0, 0), (0, more), (0, 0)))
    read = jnp.diagonal(scores, axis1=1, axis2=2)[:, :, None] * written
    for since, until in parts[:-1]:
        half = since.shape[1]
        count = size // (2 * half)
        cut = lambda x, half=half, count=count: x.reshape(N, count, 2, half, M)
        # Rows of the second half of each part, columns of its first half.
        corners = scores.reshape(N, count, 2 * half, count, 2 * half)[:, :, half:, :, :half]
        corners = jnp.moveaxis(jnp.diagonal(corners, axis1=1, axis2=3), -1, 1)
        late = corners @ (cut(written)[:, :, 0] * jnp.exp(cut(until)[:, :, 0])) * jnp.exp(cut(since)[:, :, 1])
        read += jnp.stack([jnp.zeros_like(late), late], axis=2).reshape(N, size, M)
    return read[:, :C]


def flops(T: int, K: int, M: int, size: int) -> int:
    """Returns the operations of T tokens in chunks of `size`: products with keys, with slots, and gates.

    Args:
      T: number of tokens.
      K: width of keys.
      M: number of slots.
      size: tokens per chunk.
    """
    size = chunks.chunk_size(size, T)
    levels = (size - 1).bit_length()
    return T * (2 * size * K + size * M + 6 * M * levels + 4 * K * M + 4 * M)
