"""Lightning attention: a decay fixed by head, with slopes of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
import numpy as np

from attnlab.mechanisms.chunked import Chunked
from attnlab.ops import decay
from attnlab.ops.position import alibi_slopes


@dataclass(frozen=True)
class Lightning(Chunked):
    """y_t = Σ_{s≤t} e^(−r (t−s)) (q_t·k_s) v_s, r = 2^(−8h/H) for head h = 1 … H (Qin et al. 2024).

    Lightning Attention-2. Where H is no power of two, its code, TransNormerLLM's and MiniMax-01's take the slopes of
    ALiBi (`alibi_slopes`: those of the power below, then every other one of the power above): `slopes` "alibi".
    "formula" is 2^(−8h/H) for every H, as in Hugging Face's MiniMax. TransNormerLLM's paper prints 8h/H, and all shrink
    slopes by depth, which a mechanism does not know. Queries are not scaled, as in the authors' code. By chunks of
    `chunk` tokens; its state is a [K V] matrix. The norm that follows is the module's business.

    Raises ValueError for a chunk below 1, and for slopes of another name.
    """

    slopes: Literal["alibi", "formula"] = "alibi"
    turns = True

    def __post_init__(self):
        super().__post_init__()
        if self.slopes not in ("alibi", "formula"):
            raise ValueError(f"slopes={self.slopes!r} must be one of alibi, formula")

    def heads(self, H):
        """The slope of every head."""
        if self.slopes == "alibi":
            return {"rate": alibi_slopes(H)}
        return {"rate": jnp.asarray(2.0 ** (-8 * np.arange(1, H + 1) / H), jnp.result_type(float))}

    def update(self, memory, q, k, v, block, *, bias=None, rate):
        """Tokens after a state, by chunks."""
        fixed = jnp.full((q.shape[0], 1), -rate.astype(memory.dtype))
        y, memory = decay.causal(memory, q, k, v, fixed, block, self.chunk)
        return y.astype(v.dtype), memory
