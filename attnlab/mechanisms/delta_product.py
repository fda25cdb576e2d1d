"""DeltaProduct: several steps of the delta rule per token."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import jax.numpy as jnp

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.chunked import UnitKeys
from attnlab.mechanisms.cost import Cost, moved
from attnlab.mechanisms.inputs import shape_of
from attnlab.ops import delta, gate
from attnlab.ops.counts import check_counts
from attnlab.ops.token_block import TokenBlock


@final
@dataclass(frozen=True)
class DeltaProduct(UnitKeys):
    """Gated delta rule with several writes per token (Gated DeltaProduct).

    S_t = Π_m (I − β_tm k_tmᵀ k_tm) α_t S_{t-1} + …, y_t = q_t S_t, for the writes m = 1 … n

    The state first decays by α = e^(−A softplus(dt + shift)). Then each write erases and writes in turn, as in
    `GatedDelta`. The first one writes k and v. The extra inputs `more_keys` and `more_values` are those of the other n
    − 1 writes, and `beta` is n numbers per token, with β = 2 sigmoid(beta). The transition is then a product of n
    generalised Householder matrices, which can rotate the state. One write gives the gated delta rule. q and the keys
    are normalised to x / √(‖x‖² + ε), and q is then divided by √K. The state is a matrix [K V].

    The output is linear in v and `more_values` together. The map of `attnlab.mechanisms.weights` is its response to v.

    Raises:
        ValueError: if `chunk` or `writes` is below 1, or `epsilon` below 0.

    Source: Siems et al. 2025, eq. 5 (arXiv 2502.10297).
    """

    writes: int = 2
    """Number n of writes per token."""
    negative_eigenvalues: bool = True
    """Whether β is in 0 … 2 instead of 0 … 1: β = 2 sigmoid(beta)."""
    traits = Traits(non_causal=False, rotary=True, position_dependent=True)

    def __post_init__(self):
        super().__post_init__()
        check_counts(writes=self.writes)

    @property
    def tokens(self):
        """`beta`: strength of each write, before the sigmoid. `dt`: decay step, before the softplus.

        `more_keys` and `more_values`: what the writes after the first one write.
        """
        more = self.writes - 1
        return {"beta": (self.writes,), "dt": (), "more_keys": (more, "K"), "more_values": (more, "V")}

    @property
    def learned(self):
        """`rate`: logarithm of A. `shift`: offset of the steps."""
        return {"rate": (), "shift": ()}

    def initial(self, key, K, V):
        """Returns initial values as in Mamba-2, except that A is uniform in 0 … 16."""
        return gate.initial(key, slowest=0.0)

    def update(self, memory, q, k, v, block, *, bias=None, beta, dt, more_keys, more_values, rate, shift):
        """Processes new tokens by chunks, where every write is a token of its own."""
        n = self.writes
        dt, rate, shift = (x.astype(memory.dtype) for x in (dt, rate, shift))
        log_gates = gate.log_decay(gate.step_size(dt[:, None], shift[None]), rate)
        every = lambda first, more: jnp.concatenate([first[:, None], more.astype(first.dtype)], axis=1)
        # The state decays before the first write of a token, and is read after the last one.
        first = jnp.pad(log_gates[:, None], ((0, 0), (0, n - 1), (0, 0)))
        last = jnp.pad(q[:, None], ((0, 0), (n - 1, 0), (0, 0)))
        rows = (last, every(k, more_keys), every(v, more_values), beta, first)
        q, k, v, beta, log_gates = (x.reshape(-1, *x.shape[2:]) for x in rows)
        y, memory = self.advance(memory, q, k, v, beta, log_gates, repeat(block, n))
        return y[n - 1 :: n], memory

    def cost(self, T, S, K, V, block=None):
        """Counts the delta rule over all writes."""
        numbers = sum(math.prod(shape_of(shape, K, V)) for shape in self.tokens.values())
        flops = delta.flops(self.writes * T, K, V, self.at_once(None if block is None else self.writes * block))
        return Cost(flops, moved(T, T, K, V) + 4 * T * numbers, 4 * K * V)


def repeat(block: TokenBlock, count: int) -> TokenBlock:
    """Returns the block with every token repeated `count` times."""
    return replace(block, **{name: getattr(block, name).repeat(count) for name in ("keep", "i", "run")})
