"""Mamba-3: a trapezoidal update, and queries and keys that rotate by angles of the tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnlab.mechanisms.chunked import Chunked
from attnlab.mechanisms.cost import Cost
from attnlab.ops import decay as decays
from attnlab.ops import gate
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.token_block import TokenBlock
from attnlab.ops.tree import pytree

SLOWEST = 1e-4
"""The smallest A, as in the authors' code."""


@pytree
@dataclass(frozen=True)
class Trapezoid:
    """Memory of `Mamba3`. The last token is apart, because what it adds depends on the token after it."""

    sums: Float[Array, "K V"]
    """The state without the last token."""
    k: Float[Array, " K"]
    """The last key, rotated."""
    v: Float[Array, " V"]
    """The last value."""
    write: Float[Array, ""]
    """Weight γ of the last token."""
    angle: Float[Array, " N"]
    """Sum of all angles so far, modulo 2π."""


@final
@dataclass(frozen=True)
class Mamba3(Chunked):
    """Linear attention with a trapezoidal update and data-dependent rotations (Mamba-3, one input and output).

    S_t = α_t S_{t-1} + β_t k̃_{t-1}ᵀ v_{t-1} + γ_t k̃_tᵀ v_t, y_t = q̃_t S_t

    α = e^(−A Δ), β = (1 − λ) Δ α, γ = λ Δ, Δ = softplus(dt + shift), λ = sigmoid(trapezoid)

    A is `decay` + 1 for positive `decay` and 1 / (1 − `decay`) for negative, and at least 0.0001. q̃_t and k̃_t are q_t
    + q_bias and k_t + k_bias, of which each pair of channels 2n, 2n+1 is rotated by Σ_{s≤t} π Δ_s tanh(angle_s). This
    is a state with complex decays. In the paper's letters, q is C, k is B and v is x. The extra inputs `dt`, `decay`
    and `trapezoid` are one number per token, and `angle` is one per pair of channels. `shift` is learned, one per head,
    and the biases, one per key channel. Δ starts as in Mamba-2, biases as ones. The state is a matrix [K V], and the
    last key and value. The norms of q and k before, the skip connection D x and the output gate belong to the module.
    The authors rotate half of the channels, and with the same angles in all heads; here all channels are rotated, and
    each head has its own angles.

    Rotary positions are not supported: the biases are added after them.

    Raises:
        ValueError: if `chunk` is below 1.

    Source: Lahoti et al. 2026 (arXiv 2603.15569), with A and the angles of the authors' code. That code has had two
    formulas for A, see `softplus_decay`.
    """

    softplus_decay: bool = False
    """Whether A is softplus(decay), at least 0.0001. Some versions of the authors' code have this, others the default.

    For `decay` = 0, the default is 1 and the softplus is 0.69. For `decay` = −5 they are 0.17 and 0.0067.
    """

    @property
    def tokens(self):
        """`dt`, `decay`, `trapezoid` and `angle`: Δ, A, λ and the angles, before their functions."""
        return {"dt": (), "decay": (), "trapezoid": (), "angle": ("K/2",)}

    @property
    def learned(self):
        """`shift`: offset of the steps. `q_bias`, `k_bias`: biases of queries and keys."""
        return {"shift": (), "q_bias": ("K",), "k_bias": ("K",)}

    def initial(self, key, K, V):
        """Returns an offset of the steps as in Mamba-2, and biases of one."""
        ones = jnp.ones(K, jnp.float32)
        return {"shift": gate.initial(key)["shift"], "q_bias": ones, "k_bias": ones}

    def init_memory(self, length, K, V, dtype):
        """Returns an empty state in at least float32."""
        zeros = lambda *shape: jnp.zeros(shape, accumulation_dtype(dtype))
        return Trapezoid(zeros(K, V), zeros(K), zeros(V), zeros(), zeros(K // 2))

    def update(self, memory, q, k, v, block, *, bias=None, dt, decay, trapezoid, angle, shift, q_bias, k_bias):
        """Processes new tokens by chunks.

        A token writes with γ at once. When the next one comes, it has decayed and gains β: this is what enters `sums`.
        """
        cast, kind = lambda x: x.astype(memory.sums.dtype), v.dtype
        q, k, v, dt, trapezoid, angle, shift = map(cast, (q, k, v, dt, trapezoid, angle, shift))
        keep = jnp.asarray(block.keep)[:, None]
        dt, share = gate.step_size(dt[:, None], shift[None]), jax.nn.sigmoid(trapezoid)[:, None]
        rate = jax.nn.softplus if self.softplus_decay else gate.heavy_tail
        log_gates = -jnp.maximum(rate(cast(decay)[:, None]), SLOWEST) * dt
        write, turn = share * dt, np.pi * dt * jnp.tanh(angle)
        angles = memory.angle[None] + jnp.cumsum(jnp.where(keep, turn, 0), axis=0)
        q, k = rotate(q + cast(q_bias)[None], angles), rotate(k + cast(k_bias)[None], angles)
        (last_k, last_v, last_write), last = _previous(memory, k, v, write, block)
        entering = jnp.exp(log_gates) * (last_write + (1 - share) * dt) * last_k
        y, sums = decays.causal(memory.sums, q, jnp.where(keep, entering, 0), last_v, log_gates, block, self.chunk)
        y = y + write * jnp.sum(q * k, axis=1, keepdims=True) * v
        k, v, write = last
        return y.astype(kind), Trapezoid(sums, k, v, write[0], angles[-1] % (2 * np.pi))

    def cost(self, T, S, K, V, block=None):
        """Counts a decay with one gate per token, the rotations, and the last token."""
        cost = super().cost(T, S, K, V, block)
        flops = cost.flops + T * (16 * K + 2 * V)
        return Cost(flops, cost.bytes, cost.state_bytes + 4 * (K + V + 1 + K // 2))


def rotate(x: Float[Array, "T K"], angle: Float[Array, "T N"]) -> Float[Array, "T K"]:
    """Returns x with each pair (x[2n], x[2n+1]) rotated by an angle. A last channel without a partner stays."""
    T, N = angle.shape
    one, other, cos, sin = x[:, 0 : 2 * N : 2], x[:, 1 : 2 * N : 2], jnp.cos(angle), jnp.sin(angle)
    turned = jnp.stack([one * cos - other * sin, one * sin + other * cos], axis=-1).reshape(T, 2 * N)
    return jnp.concatenate([turned, x[:, 2 * N :]], axis=1)


def _previous(memory: Trapezoid, k, v, write, block: TokenBlock) -> tuple[tuple, tuple]:
    """Returns key, value and weight of the kept token before each one, and those of the last kept token.

    The weight and the key of a token that begins a segment are zero, because no token of it is before.
    """
    before = (memory.k[None], memory.v[None], memory.write[None, None])
    rows = tuple(jnp.concatenate(pair) for pair in zip(before, (k, v, write), strict=True))
    if block.plain:
        return tuple(x[:-1] for x in rows), tuple(x[-1] for x in rows)
    run = jnp.append(block.before, block.run)
    last = jax.lax.cummax(jnp.where(block.keep, jnp.arange(1, len(k) + 1, dtype=jnp.int32), 0))
    at = jnp.append(jnp.zeros_like(last[:1]), last[:-1])
    own = (run[at] == run[1:])[:, None]
    last_k, last_v, last_write = (jnp.where(own, x[at], 0) for x in rows)
    return (last_k, last_v, last_write), tuple(x[last[-1]] for x in rows)
