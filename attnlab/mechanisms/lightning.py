"""Lightning attention: a decay fixed by head, with slopes of its own."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from attnlab.mechanisms.chunked import Chunked
from attnlab.ops import decay
from attnlab.ops.position import alibi_slopes


@dataclass(frozen=True)
class Lightning(Chunked):
    """y_t = Σ_{s≤t} e^(−r (t−s)) (q_t·k_s) v_s, r = 2^(−8h/H) for head h = 1 … H (Qin et al. 2024).

    Lightning Attention-2. The slopes are those of its code, of TransNormerLLM's and of MiniMax-01's, and of ALiBi; the
    formula is for H a power of two (else see `alibi_slopes`). TransNormerLLM's paper prints 8h/H, and all shrink them
    by depth, which a mechanism does not know. By chunks of `chunk` tokens; its state is a [K V] matrix. The norm that
    follows is the module's business.

    Raises ValueError for a chunk below 1.
    """

    turns = True

    def heads(self, H):
        """The slope of every head."""
        return {"rate": alibi_slopes(H)}

    def absorb(self, memory, q, k, v, block, *, bias=None, rate):
        """Tokens after a state, by chunks."""
        fixed = jnp.full((q.shape[0], 1), -rate.astype(memory.dtype))
        y, memory = decay.causal(memory, q, k, v, fixed, block, self.chunk)
        return y.astype(v.dtype), memory
