"""mLSTM: linear attention with exponential input gates and a denominator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.chunked import Chunked, divide_by_sqrt_width
from attnlab.mechanisms.cost import Cost
from attnlab.ops import exponential_gates
from attnlab.ops.precision import accumulation_dtype


@final
@dataclass(frozen=True)
class Mlstm(Chunked):
    """Linear attention with a forget gate, an exponential input gate and a denominator (mLSTM of xLSTM).

    S_t = f_t S_{t-1} + e^{w_t} k_tᵀ v_t, n_t = f_t n_{t-1} + e^{w_t} k_t, y_t = q_t S_t / max(|q_t·n_t|, 1)

    f = sigmoid(forget + forget_shift), w = write + write_shift

    The extra inputs `forget` and `write` are one number per token each. Queries are divided by √K. Sums are held
    relative to their largest exponent, so that every exponent is legal. The state is a matrix [K V+1] and one number.
    The norm and the output gate that follow belong to the module.

    Raises:
        ValueError: if `chunk` is below 1.

    Source: Beck et al. 2024, eq. 19-27 (arXiv 2405.04517).
    """

    traits = Traits(non_causal=False, rotary=True, position_dependent=True)

    @property
    def tokens(self):
        """`forget`: forget gate, before shift and sigmoid. `write`: exponent of the input gate, before the shift."""
        return {"forget": (), "write": ()}

    @property
    def learned(self):
        """`forget_shift` and `write_shift`: offsets of the gates."""
        return {"forget_shift": (), "write_shift": ()}

    def initial(self, key, K, V):
        """Returns initial values as in xLSTM 7B: forget gates open by an offset in 3 … 6, input gates shut by −10.

        There the offsets of the heads are evenly spaced in 3 … 6; here each is drawn at random. That model also bounds
        both gates by 15 tanh(x / 15) before the sigmoid and the exponential, which the paper and this class do not. The
        first code of xLSTM draws the offset of the input gates from a normal distribution of deviation 0.1.
        """
        return {
            "forget_shift": jax.random.uniform(key, (), jnp.float32, 3, 6),
            "write_shift": jnp.float32(-10),
        }

    def init_memory(self, length, K, V, dtype):
        """Returns empty sums [K V+1] and their exponent, in at least float32."""
        return exponential_gates.empty(K, V, accumulation_dtype(dtype))

    def update(self, memory, q, k, v, block, *, bias=None, forget, write, forget_shift, write_shift):
        """Processes new tokens by chunks."""
        dtype = memory[0].dtype
        forget, write, forget_shift, write_shift = (x.astype(dtype) for x in (forget, write, forget_shift, write_shift))
        log_gates, log_writes = jax.nn.log_sigmoid(forget + forget_shift)[:, None], (write + write_shift)[:, None]
        q = divide_by_sqrt_width(q.astype(dtype))
        y, memory = exponential_gates.causal(memory, q, k, v, log_gates, log_writes, block, self.chunk)
        return y.astype(v.dtype), memory

    def cost(self, T, S, K, V, block=None):
        """Counts a decay with one gate per token over V + 1 values, and the divisions."""
        cost = super().cost(T, S, K, V, block)
        flops = exponential_gates.flops(T, K, V, self.at_once(block))
        return Cost(flops, cost.bytes, 4 * (K * (V + 1) + 1))
