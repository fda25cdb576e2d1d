"""A state that fades as keys and values are added: S_t = diag(a_t) S_{t-1} + k_tᵀ v_t, y_t = q_t S_t.

By chunks: within one, token t reads token s by the gates between them; from one to the next goes the state
(Yang et al. 2023, eq. 4-6; for one gate a token, Dao and Gu 2024, section 6).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops import chunks
from attnlab.ops.fading import Sums, double, weights, whole
from attnlab.ops.linear import Reach, weighed


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
    fade = weighed(log_gates, block.keep[:, None])
    return chunks.sweep(_absorb, state, (q, k, v, fade), block, size)


def _absorb(state, columns, reach: Reach):
    q, k, v, log_gates = columns
    parts = double(log_gates)
    (near,), sums = weights((q,), k, parts, reach.pairs), whole(parts, q.shape[1])
    new = jnp.swapaxes(writes(k, sums, reach), 1, 2) @ v

    def advance(state, here):
        keep, new = here
        return keep * state + new, state

    state, before = jax.lax.scan(advance, state, (keeps(sums, reach), new))
    return near @ v + reads(q, sums, reach) @ before, state


def reads(q: Float[Array, "N C K"], sums: Sums, reach: Reach) -> Float[Array, "N C K"]:
    """What a query makes of the state before its chunk: q_t by the gates up to t."""
    return weighed(q * jnp.exp(sums.since), reach.sees[:, :, None])


def writes(k: Float[Array, "N C K"], sums: Sums, reach: Reach) -> Float[Array, "N C K"]:
    """What a key makes of the state after its chunk: k_t by the gates after t."""
    return weighed(k * jnp.exp(sums.until), reach.stays[:, :, None])


def keeps(sums: Sums, reach: Reach) -> Float[Array, "N G 1"]:
    """What a chunk leaves of the state: the product of its gates."""
    return weighed(jnp.exp(jnp.swapaxes(sums.since[:, -1:], 1, 2)), reach.carries[:, None, None])


def flops(T: int, K: int, V: int, size: int, G: int = 1) -> int:
    """Of T tokens in chunks of `size`: products, and the sums of gates and what they multiply."""
    size = chunks.fit(size, T)
    levels = (size - 1).bit_length()
    pairs = 2 * size * K + 4 * size if G == 1 else size * K + 6 * K * levels
    return T * (pairs + 2 * size * V + 4 * K * V + 4 * K)
