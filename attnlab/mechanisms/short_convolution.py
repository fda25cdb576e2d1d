"""Any mechanism that decodes, behind a short convolution of its queries and keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.mechanisms.base import Mechanism, State
from attnlab.mechanisms.cost import Cost
from attnlab.mechanisms.gated_delta import GatedDelta
from attnlab.mechanisms.inputs import split
from attnlab.mechanisms.position_state import TokenBlock
from attnlab.mechanisms.wrapper import Wrapper
from attnlab.ops.counts import check_counts
from attnlab.ops.layer import silu
from attnlab.ops.linear import apply_weights
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.tree import pytree

KERNELS = ("conv_q", "conv_k")


@pytree
@dataclass(frozen=True)
class Delayed:
    """What the mechanism remembers; and the last kept queries and keys [size − 1 K], with their runs (of none: 0)."""

    inner: Any
    q: Any
    k: Any
    run: Any


@dataclass(frozen=True)
class ShortConvolution(Wrapper):
    """`mechanism` of q' and k', x'_t = silu(Σ_n w_n ⊙ x_{t−n}), n = 0 … size−1 (Yang, Kautz and Hatamizadeh 2024, 3.4).

    w: a number for each component and step back, learned, one set a head; zero before the beginning. So the key of a
    token can hold what stood before it, and one layer binds that to what follows. Values stay as they are, unlike in
    the paper, so that the map of the mechanism stands. Padding is stepped over; a change of segment is a beginning.
    Rotary positions turn what was convolved. Its state is the mechanism's, and the last size−1 queries and keys.

    Raises ValueError for a mechanism that absorbs no tokens, and a size below 1.
    """

    rowwise = False
    mechanism: Mechanism = GatedDelta()
    size: int = 4

    def __post_init__(self):
        check_counts(size=self.size)
        if not self.mechanism.stateful or type(self.mechanism).extend is not Mechanism.extend:
            raise ValueError(f"mechanism={self.mechanism} absorbs no tokens: what is convolved is the past of new ones")

    @property
    def learned(self):
        """Those of the mechanism, and a kernel [size K] each for queries and keys."""
        return self.mechanism.learned | dict.fromkeys(KERNELS, (self.size, "K"))

    def initial(self, key, K, V):
        """As the mechanism; kernels uniform within 1/√size."""
        inner, *keys = jax.random.split(key, 1 + len(KERNELS))
        far = 1 / math.sqrt(self.size)
        drawn = {
            name: jax.random.uniform(key, (self.size, K), minval=-far, maxval=far)
            for name, key in zip(KERNELS, keys, strict=True)
        }
        return self.mechanism.initial(inner, K, V) | drawn

    @property
    def query_head_axes(self):
        """The last queries, and what is of queries in the mechanism's state."""
        inner = self.mechanism.query_head_axes
        return State(None, Delayed(None if inner is None else inner.memory, 0, None, None))

    def with_rotary(self, position):
        """The same with what is convolved turned, or the mechanism's features."""
        if not self.mechanism.turns:
            return super().with_rotary(position)
        return _Turned(mechanism=self.mechanism, size=self.size, position=position)

    def cost(self, T, S, K, V, block=None):
        """That of the mechanism, and of the convolutions."""
        inner, rows = self.mechanism.cost(T, S, K, V, block), 4 * 2 * K
        flops = T * 2 * K * (2 * self.size + 4)
        return Cost(inner.flops + flops, inner.bytes + self.size * rows, inner.state_bytes + (self.size - 1) * rows)

    def init_memory(self, length, K, V, dtype):
        """The mechanism's, and no tokens yet."""
        # Of the run that a state begins with: zeros change nothing there.
        none, runs = jnp.zeros((self.size - 1, K), accumulation_dtype(dtype)), np.zeros(self.size - 1, np.int32)
        return Delayed(self.mechanism.init_memory(length, K, V, dtype), none, none, runs)

    def update(self, memory, q, k, v, block, *, bias=None, **extra):
        """New tokens, convolved with the last ones, for the mechanism."""
        kernels, extra = split(extra, KERNELS)
        q, k, *tail = self._convolved(memory, q, k, block, kernels)
        y, inner = self.mechanism.update(memory.inner, q, k, v, block, bias=bias, **extra)
        return y, Delayed(inner, *tail)

    def attend_causal(self, q, k, v, block, *, bias=None, **extra):
        """A whole sequence, convolved, in the mechanism's fastest form."""
        q, k, extra = self.before(q, k, block, extra)
        return self.mechanism.attend_causal(q, k, v, block, bias=bias, **extra)

    def before(self, q, k, block: TokenBlock, extra: dict) -> tuple[Any, Any, dict]:
        """What a whole sequence is to the mechanism: queries, keys, and its own extras."""
        kernels, extra = split(extra, KERNELS)
        q, k, *_ = self._convolved(self.init_memory(0, q.shape[1], 0, q.dtype), q, k, block, kernels)
        return q, k, extra

    def _convolved(self, memory: Delayed, q, k, block: TokenBlock, kernels: dict) -> tuple:
        """Queries and keys of a block, convolved; the last of both after it, and their runs."""
        # Apart: several heads of queries share the keys of one, and what is remembered of them.
        q, last_q, run = self._past(memory.q, memory.run, q, block, kernels["conv_q"])
        k, last_k, run = self._past(memory.k, memory.run, k, block, kernels["conv_k"])
        return q, k, last_q, last_k, run

    def _past(self, rows, runs, x, block: TokenBlock, kernel):
        """silu(Σ_n w_n ⊙ x_{t−n}) over kept tokens of one run, in float32 at least; the last rows and their runs."""
        back, T, kind = self.size - 1, x.shape[0], x.dtype
        x, kernel = x.astype(rows.dtype), kernel.astype(rows.dtype)
        if block.plain:
            rows = jnp.concatenate([apply_weights(rows, (runs == block.before)[:, None]), x])
            shifted = [rows[back - n : back - n + T] for n in range(self.size)]
            after, told = rows[T:], jnp.concatenate([runs, block.run])[T:]
        else:
            # Kept tokens stand side by side, behind the last ones.
            count = jnp.cumsum(block.keep, dtype=jnp.int32)
            slot = jnp.where(block.keep, back + count - 1, back + T)
            rows = jnp.concatenate([rows, jnp.zeros_like(x)]).at[slot].set(x, mode="drop")
            runs = jnp.concatenate([runs, block.run]).at[slot].set(block.run, mode="drop")
            at = jnp.maximum(back + count[None] - 1 - jnp.arange(self.size, dtype=jnp.int32)[:, None], 0)
            shifted = jnp.where((runs[at] == block.run[None])[..., None], rows[at], 0)
            after, told = (jax.lax.dynamic_slice_in_dim(each, count[-1], back) for each in (rows, runs))
        # One by one: on a CPU, with jax 0.10.2, a sum over so short an axis takes 10 to 100 times as long.
        mixed = reduce(add, (kernel[n : n + 1] * shifted[n] for n in range(self.size)))
        return silu(mixed).astype(kind), after, told


@dataclass(frozen=True)
class _Turned(ShortConvolution):
    """The same, turned by rotary positions behind the convolution."""

    position: Any = None

    def _convolved(self, memory, q, k, block, kernels):
        q, k, *tail = super()._convolved(memory, q, k, block, kernels)
        return *self.position.rotate(q, k, block.positions, block.positions), *tail
