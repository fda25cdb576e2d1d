"""A short convolution of queries and keys before any mechanism that decodes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from attnlab.mechanisms.base import Traits
from attnlab.mechanisms.checked import CheckedMechanism
from attnlab.mechanisms.cost import Cost
from attnlab.mechanisms.gated_delta import GatedDelta
from attnlab.mechanisms.inputs import split
from attnlab.mechanisms.query_heads import PerQueryHead
from attnlab.mechanisms.recurrent import Recurrent
from attnlab.mechanisms.rotated import Rotated
from attnlab.mechanisms.wrapper import Wrapper
from attnlab.ops.counts import check_counts
from attnlab.ops.layer import silu
from attnlab.ops.linear import apply_weights
from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.precision import accumulation_dtype
from attnlab.ops.token_block import TokenBlock
from attnlab.ops.tree import pytree

KERNELS = ("conv_q", "conv_k")


@pytree
@dataclass(frozen=True)
class Delayed:
    """Memory of `ShortConvolution`: the mechanism's memory and the last kept tokens."""

    inner: PyTree
    """Memory of the wrapped mechanism."""
    q: PerQueryHead
    """Last kept queries [size−1 K]."""
    k: Float[Array, "N K"]
    """Last kept keys [size−1 K]."""
    run: Int[ArrayOrNumpy, " N"]
    """Run of each of these tokens, see `TokenBlock`. 0 if there is no token yet."""


@final
@dataclass(frozen=True)
class ShortConvolution(Recurrent, Wrapper):
    """Applies a short causal convolution and SiLU to queries and keys before a mechanism.

    x'_t = silu(Σ_n w_n ⊙ x_{t−n}), n = 0 … size−1, for queries and keys

    The kernel w has one learned number per component and step back, one set per head. Tokens before the beginning count
    as zero. The key of a token can thus hold the tokens before it, so that one layer can associate them with what
    follows. Values are not convolved, unlike in the paper, so that the mechanism's attention map stays valid.

    Padding is skipped. A change of segment counts as a beginning. Rotary positions rotate the convolved queries and
    keys. The state holds the mechanism's memory and the last size−1 queries and keys.

    Raises:
        ValueError: if `size` is below 1, or if `mechanism` cannot decode.

    Source: Yang, Kautz and Hatamizadeh 2024, section 3.4.
    """

    mechanism: CheckedMechanism = GatedDelta()
    """Mechanism that receives the convolved queries and keys."""
    size: int = 4
    """Number of tokens that the kernel covers."""

    def __post_init__(self):
        check_counts(size=self.size)
        if not self.mechanism.traits.decodes:
            raise ValueError(f"mechanism={self.mechanism} cannot decode, but a short convolution is causal")

    @property
    def traits(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """As in the wrapped mechanism, but an output depends on earlier queries, and only `Causal()` is supported."""
        inner = self.mechanism.traits
        return Traits(
            non_causal=False,
            rotary=False,
            bias=inner.bias,
            row_independent=False,
            position_dependent=True,
            ill_conditioned=inner.ill_conditioned,
            undecayed=inner.undecayed,
        )

    @property
    def learned(self):
        """Learned arrays of the mechanism, and a kernel [size K] each for queries and keys."""
        return self.mechanism.learned | dict.fromkeys(KERNELS, (self.size, "K"))

    def initial(self, key, K, V):
        """Returns the mechanism's initial values, and kernels uniform within ±1/√size."""
        inner, *keys = jax.random.split(key, 1 + len(KERNELS))
        far = 1 / math.sqrt(self.size)
        drawn = {
            name: jax.random.uniform(key, (self.size, K), minval=-far, maxval=far)
            for name, key in zip(KERNELS, keys, strict=True)
        }
        return self.mechanism.initial(inner, K, V) | drawn

    def with_rotary(self, position):
        """Returns this wrapper with rotated convolved tokens, or around the mechanism with rotary features."""
        if not self.mechanism.traits.rotary:
            return super().with_rotary(position)
        return replace(self, mechanism=Rotated(self.mechanism, position))

    def cost(self, T, S, K, V, block=None):
        """Counts the mechanism and the convolutions."""
        inner, rows = self.mechanism.cost(T, S, K, V, block), 4 * 2 * K
        flops = T * 2 * K * (2 * self.size + 4)
        return Cost(inner.flops + flops, inner.bytes + self.size * rows, inner.state_bytes + (self.size - 1) * rows)

    def init_memory(self, length, K, V, dtype):
        """Returns the memory of the mechanism, and no tokens."""
        # Run 0, in which a state begins. The rows are zero and change nothing there.
        none, runs = jnp.zeros((self.size - 1, K), accumulation_dtype(dtype)), np.zeros(self.size - 1, np.int32)
        return Delayed(self.mechanism.init_memory(length, K, V, dtype), PerQueryHead(none), none, runs)

    def update(self, memory, q, k, v, block, *, bias=None, **extra):
        """Convolves new tokens with the last ones, and passes them to the mechanism."""
        kernels, extra = split(extra, KERNELS)
        q, k, *tail = self._convolved(memory, q, k, block, kernels)
        y, inner = self.mechanism.update(memory.inner, q, k, v, block, bias=bias, **extra)
        return y, Delayed(inner, *tail)

    def attend_causal(self, q, k, v, block, *, bias=None, **extra):
        """Convolves a whole sequence, and passes it to the mechanism's fastest form."""
        q, k, extra = self.convolved(q, k, block, extra)
        return self.mechanism.attend_causal(q, k, v, block, bias=bias, **extra)

    def convolved(self, q, k, block: TokenBlock, extra: dict) -> tuple[Float[Array, "T K"], Float[Array, "T K"], dict]:
        """Returns the convolved queries and keys of a whole sequence, and the mechanism's own extra inputs."""
        kernels, extra = split(extra, KERNELS)
        q, k, *_ = self._convolved(self.init_memory(0, q.shape[1], 0, q.dtype), q, k, block, kernels)
        return q, k, extra

    def _convolved(self, memory: Delayed, q, k, block: TokenBlock, kernels: dict) -> tuple:
        """Returns the convolved queries and keys of a block, the last queries and keys after it, and their runs."""
        # Queries and keys are convolved separately. Several query heads may share the keys of one head and their
        # memory.
        q, last_q, run = self._past(jnp.asarray(memory.q.value), memory.run, q, block, kernels["conv_q"])
        k, last_k, run = self._past(memory.k, memory.run, k, block, kernels["conv_k"])
        return q, k, PerQueryHead(last_q), last_k, run

    def _past(self, rows, runs, x, block: TokenBlock, kernel):
        """Returns silu(Σ_n w_n ⊙ x_{t−n}) over kept tokens of one run, the last rows, and their runs.

        The computation is in at least float32.
        """
        back, T, kind = self.size - 1, x.shape[0], x.dtype
        x, kernel = x.astype(rows.dtype), kernel.astype(rows.dtype)
        if block.plain:
            rows = jnp.concatenate([apply_weights(rows, (runs == block.before)[:, None]), x])
            shifted = [rows[back - n : back - n + T] for n in range(self.size)]
            after, runs = rows[T:], jnp.concatenate([runs, block.run])[T:]
        else:
            # Kept tokens are written contiguously after the last ones.
            count = jnp.cumsum(block.keep, dtype=jnp.int32)
            slot = jnp.where(block.keep, back + count - 1, back + T)
            rows = jnp.concatenate([rows, jnp.zeros_like(x)]).at[slot].set(x, mode="drop")
            runs = jnp.concatenate([runs, block.run]).at[slot].set(block.run, mode="drop")
            at = jnp.maximum(back + count[None] - 1 - jnp.arange(self.size, dtype=jnp.int32)[:, None], 0)
            shifted = jnp.where((runs[at] == block.run[None])[..., None], rows[at], 0)
            after, runs = (jax.lax.dynamic_slice_in_dim(each, count[-1], back) for each in (rows, runs))
        # Summed term by term. On a CPU with jax 0.10.2, a sum over so short an axis takes 10 to 100 times as long.
        mixed = reduce(add, (kernel[n : n + 1] * shifted[n] for n in range(self.size)))
        return silu(mixed).astype(kind), after, runs
