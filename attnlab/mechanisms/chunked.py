"""Base classes of mechanisms whose causal form processes chunks of tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import jax
from jaxtyping import Array, Float

from attnlab.mechanisms.cost import Cost, moved
from attnlab.mechanisms.inputs import shape_of
from attnlab.mechanisms.recurrent import Recurrent
from attnlab.ops import decay, delta
from attnlab.ops.counts import check_counts
from attnlab.ops.layer import l2_normalize
from attnlab.ops.token_block import TokenBlock


@dataclass(frozen=True)
class Chunked(Recurrent):
    """Base class of recurrent mechanisms that process chunks of tokens.

    Tokens of one chunk interact by matrix products. A state [K V] connects the chunks.

    Raises:
        ValueError: if `chunk` is below 1.
    """

    chunk: int = 64
    """Number of tokens per chunk."""
    rule: ClassVar[ModuleType] = decay
    """Module of `attnlab.ops` that updates the state."""

    def __post_init__(self):
        check_counts(chunk=self.chunk)

    def at_once(self, block: int | None) -> int:
        """Returns the number of tokens per chunk if `block` tokens are given at a time (None: all)."""
        return self.chunk if block is None else min(block, self.chunk)

    def cost(self, T, S, K, V, block=None):
        """Counts the pairs within a chunk, and writing and reading the state [K V].

        There are K gates per token if an extra input has the shape ("K",), and one otherwise.
        """
        numbers = sum(math.prod(shape_of(shape, K, V)) for shape in self.tokens.values())
        flops = self.rule.flops(T, K, V, self.at_once(block), K if ("K",) in self.tokens.values() else 1)
        return Cost(flops, moved(T, T, K, V) + 4 * T * numbers, 4 * K * V)


@dataclass(frozen=True)
class UnitKeys(Chunked):
    """Base class of delta rules: q and k have norm one, and q may be divided by √K.

    Raises:
        ValueError: if `chunk` is below 1, or `epsilon` below 0.
    """

    scale_queries: bool = True
    """Whether to divide q by √K, as the authors' code does.

    The layers of the authors then normalise the output of each head (`MultiHead.head_norm`), which all but undoes the
    division. Without that norm the outputs stay small. There False trained gated-delta better
    (`experiments/shakespeare.py`); other delta rules were not measured.
    """
    epsilon: float = 1e-6
    """ε in the normalisation x / √(‖x‖² + ε)."""
    negative_eigenvalues: bool = False
    """Whether β is in 0 … 2 instead of 0 … 1: β = 2 sigmoid(beta).

    The eigenvalue 1 − β of the matrix I − β kᵀk is then in −1 … 1. A model with one layer needs negative eigenvalues to
    compute a parity (Grazzi et al. 2024).
    """
    rule = delta
    missing_values: ClassVar[dict] = {"scale_queries": False, "epsilon": 0.0}
    """Values of fields that are missing in older saved configurations."""

    def __post_init__(self):
        super().__post_init__()
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon={self.epsilon} must be 0 or more")

    def directions(self, q: Float[Array, "T K"], k: Float[Array, "T K"]) -> tuple[Array, Array]:
        """Returns the normalised queries, divided by √K if `scale_queries`, and the normalised keys."""
        q, k = l2_normalize(q, self.epsilon), l2_normalize(k, self.epsilon)
        return (divide_by_sqrt_width(q) if self.scale_queries else q), k

    def strength(self, beta: Float[Array, "T ..."]) -> Float[Array, "T ..."]:
        """Returns the strength β of each write: sigmoid(beta), or twice that with `negative_eigenvalues`."""
        return jax.nn.sigmoid(beta) * (2 if self.negative_eigenvalues else 1)

    def advance(
        self,
        state: Float[Array, "K V"],
        q: Float[Array, "T K"],
        k: Float[Array, "T K"],
        v: Float[Array, "T V"],
        beta: Float[Array, " T"],
        log_gates: Float[Array, "T G"],
        block: TokenBlock,
    ) -> tuple[Float[Array, "T V"], Float[Array, "K V"]]:
        """Processes new tokens in chunks.

        Args:
            state: The state before the tokens [K V].
            q: Queries [T K], not normalised.
            k: Keys [T K], not normalised.
            v: Values [T V].
            beta: The strengths of the writes [T], before the sigmoid.
            log_gates: The logarithms of the gates [T G].
            block: The block of tokens.

        Returns:
            The outputs [T V] in the dtype of v, and the state after the tokens [K V].
        """
        q, k = self.directions(q.astype(state.dtype), k.astype(state.dtype))
        beta = self.strength(beta.astype(state.dtype))[:, None]
        y, state = delta.causal(state, q, k, beta * v.astype(state.dtype), beta * k, log_gates, block, self.chunk)
        return y.astype(v.dtype), state


def divide_by_sqrt_width(q: Float[Array, "T K"]) -> Float[Array, "T K"]:
    """Returns q / √K."""
    return q * q.shape[1] ** -0.5
