"""What mechanisms have in common whose causal form goes by chunks of tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Array, Float

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.cost import Cost, moved
from attnlab.mechanisms.inputs import shape_of
from attnlab.ops import decay, delta
from attnlab.ops.counts import check_counts
from attnlab.ops.layer import l2_normalize


@dataclass(frozen=True)
class Chunked(Mechanism):
    """Tokens of one chunk meet in products of matrices; from chunk to chunk goes a state.

    `rule` is how it changes, one of `ops`. Raises ValueError for a chunk below 1.
    """

    chunk: int = 64
    rule: ClassVar[Any] = decay

    def __post_init__(self):
        check_counts(chunk=self.chunk)

    def at_once(self, block: int | None) -> int:
        """Tokens that meet, where `block` come at a time (None: all)."""
        return self.chunk if block is None else min(block, self.chunk)

    def cost(self, T, S, K, V, block=None):
        """Pairs within a chunk, and the state [K V] written and read; K gates a token, or one, where it has any."""
        told = sum(math.prod(shape_of(shape, K, V)) for shape in self.tokens.values())
        flops = self.rule.flops(T, K, V, self.at_once(block), K if ("K",) in self.tokens.values() else 1)
        return Cost(flops, moved(T, T, K, V) + 4 * T * told, 4 * K * V)


@dataclass(frozen=True)
class UnitKeys(Chunked):
    """What the delta rules have in common: q and k of norm one, and queries over √K.

    Raises ValueError for a chunk below 1, and for an epsilon below 0.
    """

    scale_queries: bool = True
    epsilon: float = 1e-6
    rule = delta
    missing_values: ClassVar[dict] = {"scale_queries": False, "epsilon": 0.0}

    def __post_init__(self):
        super().__post_init__()
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon={self.epsilon} must be 0 or more")

    def directions(self, q: Float[Array, "T K"], k: Float[Array, "T K"]) -> tuple[Array, Array]:
        """Queries and keys as the rule takes them."""
        q, k = l2_normalize(q, self.epsilon), l2_normalize(k, self.epsilon)
        return (divide_by_sqrt_width(q) if self.scale_queries else q), k


def divide_by_sqrt_width(q: Float[Array, "T K"]) -> Float[Array, "T K"]:
    """q / √K."""
    return q * q.shape[1] ** -0.5
