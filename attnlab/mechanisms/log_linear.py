"""Log-linear attention: a state that grows with the logarithm of the length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.cost import Cost, moved
from attnlab.mechanisms.recurrent import Recurrent, update_by_blocks
from attnlab.ops import gate, log_linear
from attnlab.ops.counts import check_counts
from attnlab.ops.linear import Visibility, apply_weights
from attnlab.ops.precision import accumulation_dtype


@final
@dataclass(frozen=True)
class LogLinear(Recurrent):
    """State space duality with one sum per level of a Fenwick tree (log-linear Mamba-2).

    y_t = Σ_{s≤t} λ_t[level(t, s)] e^(−A (Δ_{s+1} + … + Δ_t)) (q_t·k_s) Δ_s v_s, λ = softplus(levels)

    The level of a pair is the bit length of t xor s (0 for 0, 2 for 2 and 3), so that recent tokens are told apart more
    finely than old ones. With λ = 1 this is `Ssd`. The extra input `dt` is one number per token, and `levels` is one
    per query and level. A = e^rate and `shift` are learned, one per head, as in Mamba-2. The state is a matrix [K V]
    per level. The authors' code multiplies `levels` by learned numbers within the softplus, one per head and level,
    that begin as one. A linear map to `levels` can learn the same.

    Raises:
        ValueError: if `length` or `block` is below 1, or if a position is known to lie beyond `length`. The output of a
            traced position beyond is NaN.

    Source: Guo et al. 2025, eq. 4 and section 3.4 (arXiv 2506.04761).
    """

    length: int = 512
    """Maximum number of positions. It sets the number of levels."""
    block: int = 64
    """Number of tokens whose pairs are computed at once."""
    traits = Traits(non_causal=False, rotary=True, position_dependent=True)

    def __post_init__(self):
        check_counts(length=self.length, block=self.block)

    @property
    def count(self) -> int:
        """Number of levels: one for the token itself, and one for each bit of a position."""
        return 1 + (self.length - 1).bit_length()

    @property
    def tokens(self):
        """`dt`: step size, before shift and softplus."""
        return {"dt": ()}

    @property
    def queries(self):
        """`levels`: weight of each level, before the softplus."""
        return {"levels": (self.count,)}

    @property
    def learned(self):
        """`rate`: logarithm of A. `shift`: offset of the steps."""
        return {"rate": (), "shift": ()}

    def initial(self, key, K, V):
        """Returns initial values as in Mamba-2."""
        return gate.initial(key)

    def with_length(self, length):
        """Returns this mechanism with `length`."""
        return replace(self, length=length)

    def check_length(self, length):
        """Checks that `length` is within the maximum."""
        if length > self.length:
            raise ValueError(f"{self} supports {self.length} positions, got {length}")

    def check_positions(self, i):
        """Checks that positions lie within `length`, if they are known."""
        if not isinstance(i, Tracer) and (last := int(np.max(np.asarray(i), initial=0))) >= self.length:
            raise ValueError(f"{self} supports positions 0 … {self.length - 1}, got {last}")

    def init_memory(self, length, K, V, dtype):
        """Returns empty sums [L K V] in at least float32."""
        return log_linear.LevelSums(jnp.zeros((self.count, K, V), accumulation_dtype(dtype)), jnp.zeros((), jnp.int32))

    def attend_causal(self, q, k, v, block, *, bias=None, **extra):
        """Attends causally, block after block."""
        return update_by_blocks(self, self.block, q, k, v, block, bias=bias, **extra)

    def update(self, memory, q, k, v, block, *, bias=None, dt, levels, rate, shift):
        """Processes a block of new tokens."""
        dtype, keep = memory.sums.dtype, jnp.asarray(block.keep)
        q, k, dt, levels, rate, shift = (x.astype(dtype) for x in (q, k, dt, levels, rate, shift))
        dt = gate.step_size(dt[:, None], shift[None])
        log_gates = jnp.where(keep[:, None], gate.log_decay(dt, rate), 0)
        pairs = block.pairs
        # The number of tokens before each one in its run: those of the block, and those of the state in its first run.
        index = jnp.sum(pairs, axis=1, dtype=jnp.int32) - 1 + jnp.where(block.state_visible, memory.count, 0)
        index = jnp.maximum(index, 0)
        visible = Visibility(
            pairs, *(jnp.asarray(x) for x in (block.state_visible, block.enters_state, block.state_survives))
        )
        written = apply_weights(k * dt, keep[:, None])
        y, after = log_linear.update_block(
            memory, q, written, v.astype(dtype), log_gates, jax.nn.softplus(levels), index, visible
        )
        return jnp.where((index < self.length)[:, None], y, jnp.nan).astype(v.dtype), after

    def cost(self, T, S, K, V, block=None):
        """Counts the pairs within a block, and one sum per level."""
        size = self.block if block is None else min(block, self.block)
        flops = log_linear.flops(T, K, V, self.count, size)
        return Cost(flops, moved(T, T, K, V) + 4 * T * (1 + self.count), 4 * self.count * K * V)
