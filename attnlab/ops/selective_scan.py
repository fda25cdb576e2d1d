"""A state whose every entry decays at its own rate: S_t = a_t ⊙ S_{t-1} + k_tᵀ v_t, y_t = q_t S_t.

The gates are a matrix [K V] per token, so that no product of matrices computes a chunk. A CPU computes the states of a
chunk one after another, which takes the fewest operations. Accelerators compute them by an associative scan over tokens
(Gu and Dao 2023, section 3.3), which takes the fewest steps.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.ops.chunks import chunk_size
from attnlab.ops.split import split_chunks
from attnlab.ops.token_block import TokenBlock
from attnlab.ops.varying import varying_like


def causal(
    state: Float[Array, "K V"],
    q: Float[Array, "T K"],
    k: Float[Array, "T K"],
    v: Float[Array, "T V"],
    dt: Float[Array, "T V"],
    rate: Float[Array, "K V"],
    block: TokenBlock,
    size: int,
) -> tuple[Float[Array, "T V"], Float[Array, "K V"]]:
    """Processes T tokens after a state, in chunks of `size`, in the precision of the state.

    Args:
      state: S before the tokens [K V].
      q: queries [T K].
      k: keys [T K].
      v: values [T V].
      dt: size of each token's time step, per value channel [T V]. The gates are e^(−rate · dt).
      rate: rates of decay [K V].
      block: the `TokenBlock` of the tokens: their positions, segments and padding.
      size: tokens per chunk. The gradient recomputes a chunk and holds its gates and states.

    Returns:
      The outputs [T V] and the state after the tokens [K V].
    """
    T = q.shape[0]
    size = chunk_size(size, T)
    run_chunk = _one_by_one if jax.default_backend() == "cpu" else _all_at_once

    @partial(jax.checkpoint, prevent_cse=False)
    def advance(state, here):
        (q, k, v, dt), block = here
        keep, run = jnp.asarray(block.keep), jnp.asarray(block.run)
        begins = run != jnp.append(block.before, run[:-1])
        # Padding neither decays nor writes. The first token of a segment forgets everything.
        gates = jnp.exp(jnp.where(keep[:, None, None], -dt[:, None, :] * rate[None], 0))
        gates = jnp.where(begins[:, None, None], 0, gates)
        return run_chunk(state, gates, q, k, jnp.where(keep[:, None], v, 0))

    columns = tuple(split_chunks(x.astype(state.dtype), size) for x in (q, k, v, dt))
    steps = columns, block.cut(size)
    state, y = jax.lax.scan(advance, varying_like(state, (steps, rate)), steps)
    return y.reshape(-1, v.shape[1])[:T], state


def _one_by_one(
    state: Float[Array, "K V"],
    gates: Float[Array, "C K V"],
    q: Float[Array, "C K"],
    k: Float[Array, "C K"],
    v: Float[Array, "C V"],
) -> tuple[Float[Array, "K V"], Float[Array, "C V"]]:
    """Processes the tokens of a chunk one after another, and returns the state after them and their outputs."""

    def advance(state, token):
        gate, q, k, v = token
        state = gate * state + k[:, None] * v[None, :]
        return state, q @ state

    return jax.lax.scan(advance, state, (gates, q, k, v))


def _all_at_once(
    state: Float[Array, "K V"],
    gates: Float[Array, "C K V"],
    q: Float[Array, "C K"],
    k: Float[Array, "C K"],
    v: Float[Array, "C V"],
) -> tuple[Float[Array, "K V"], Float[Array, "C V"]]:
    """Processes the tokens of a chunk by an associative scan, and returns the state after them and their outputs."""
    new = k[:, :, None] * v[:, None, :]
    join = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])
    states = jax.lax.associative_scan(join, (gates, new.at[0].add(gates[0] * state)))[1]
    return states[-1], jnp.einsum("tk,tkv->tv", q, states)


def flops(T: int, K: int, V: int) -> int:
    """Returns the operations of T tokens one after another: gates, writes, decay and reads.

    Args:
      T: number of tokens.
      K: width of keys.
      V: width of values.
    """
    return 8 * T * K * V
