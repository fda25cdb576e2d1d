"""Lightning attention: a fixed decay per head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import jax.numpy as jnp
import numpy as np

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.chunked import Chunked
from attnlab.ops import decay
from attnlab.ops.position import alibi_slopes


@final
@dataclass(frozen=True)
class Lightning(Chunked):
    """Linear attention with a fixed decay per head (Lightning Attention-2).

    y_t = Σ_{s≤t} e^(−r (t−s)) (q_t·k_s) v_s, r = 2^(−8h/H) for head h = 1 … H

    Queries are not scaled, as in the authors' code. The state is a matrix [K V]. The norm that follows belongs to the
    module. TransNormerLLM's paper prints 8h/H instead. All of these models reduce slopes by depth, which a mechanism
    does not know.

    Raises:
        ValueError: if `chunk` is below 1, or `slopes` has another value.

    Source: Qin et al. 2024.
    """

    slopes: Literal["alibi", "formula"] = "alibi"
    """Slopes r if H is not a power of two: "alibi" or "formula".

    "alibi" takes the slopes of ALiBi (`alibi_slopes`): those of the power of two below H, then every other one of the
    power above. The authors' code, TransNormerLLM's and MiniMax-01's do so. "formula" is 2^(−8h/H) for every H, as in
    Hugging Face's MiniMax.
    """
    traits = Traits(non_causal=False, rotary=True, position_dependent=True)

    def __post_init__(self):
        super().__post_init__()
        if self.slopes not in ("alibi", "formula"):
            raise ValueError(f"slopes={self.slopes!r} must be one of alibi, formula")

    def heads(self, H):
        """Returns the slope of every head."""
        if self.slopes == "alibi":
            return {"rate": alibi_slopes(H)}
        return {"rate": jnp.asarray(2.0 ** (-8 * np.arange(1, H + 1) / H), jnp.result_type(float))}

    def update(self, memory, q, k, v, block, *, bias=None, rate):
        """Processes new tokens by chunks."""
        fixed = jnp.full((q.shape[0], 1), -rate.astype(memory.dtype))
        y, memory = decay.causal(memory, q, k, v, fixed, block, self.chunk)
        return y.astype(v.dtype), memory
