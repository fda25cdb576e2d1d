"""Mechanisms for tests of measurements: a correct one, one for each kind of error, and some with missing features."""

from dataclasses import dataclass

import jax.numpy as jnp

from attnlab.mechanisms import Recurrent, Whole
from attnlab.mechanisms.recurrent import update_by_blocks
from attnlab.ops.precision import accumulation_dtype


@dataclass(frozen=True)
class Sum(Recurrent):
    """y_t = q_t Σ_{j ≤ t} k_jᵀ v_j / 8, computed in blocks of 16."""

    block = 16

    def init_memory(self, length, K, V, dtype):
        return jnp.zeros((K, V), accumulation_dtype(dtype))

    def near(self, block):
        return block.pairs

    def attend_causal(self, q, k, v, block, **extra):
        return update_by_blocks(self, self.block, q, k, v, block, **extra)

    def update(self, memory, q, k, v, block, *, bias=None):
        q, k, values = (x.astype(accumulation_dtype(x.dtype)) for x in (q / 8, k, v))
        here = jnp.where(self.near(block), q @ k.T, 0) @ values
        past = jnp.where(block.state_visible[:, None], q @ memory.astype(q.dtype), 0)
        new = jnp.where(block.enters_state[:, None], k, 0).T @ values
        old = jnp.where(block.state_survives, memory, jnp.zeros_like(memory))
        return (here + past).astype(v.dtype), old + new.astype(memory.dtype)


@dataclass(frozen=True)
class Late(Sum):
    """Leaves out the token itself if several tokens arrive at once: an off-by-one error."""

    def near(self, block):
        pairs = jnp.asarray(block.pairs)
        return pairs if pairs.shape[0] == 1 else pairs & ~jnp.eye(pairs.shape[0], dtype=bool)


@dataclass(frozen=True)
class Coarse(Sum):
    """Keeps its state in bfloat16."""

    def init_memory(self, length, K, V, dtype):
        return jnp.zeros((K, V), jnp.bfloat16)


@dataclass(frozen=True)
class Narrow(Sum):
    """Keeps its state in the precision of its inputs."""

    block = 1

    def init_memory(self, length, K, V, dtype):
        return jnp.zeros((K, V), dtype)


@dataclass(frozen=True)
class Leaky(Sum):
    """Lets padding change its state."""

    def update(self, memory, q, k, v, block, *, bias=None):
        y, memory = super().update(memory, q, k, v, block)
        return y, memory + jnp.where(block.keep.all(), 0.0, 1.0).astype(memory.dtype)


@dataclass(frozen=True)
class Mean(Whole):
    """y = q·w times the mean of the values. It needs all tokens at once and does not decode."""

    @property
    def learned(self):
        return {"w": ("K",)}

    def initial(self, key, K, V):
        return {"w": jnp.ones(K) / K}

    def attend_all(self, q, k, v, mask, *, i, j, bias=None, w):
        if (factors := mask.factors(i, j)) is None:
            raise NotImplementedError(f"{self} does not support {mask}: its keys depend on the query")
        seen = jnp.asarray(factors[1])[:, None]
        x = accumulation_dtype(v.dtype)
        mean = jnp.where(seen, v, 0).astype(x).sum(0) / jnp.maximum(seen.sum(), 1).astype(x)
        return ((q.astype(x) @ w.astype(x))[:, None] * mean[None, :]).astype(v.dtype)


@dataclass(frozen=True)
class Mute(Whole):
    """Refuses everything."""

    def attend_all(self, q, k, v, mask, *, i, j, bias=None):
        raise NotImplementedError(f"{self} does not support {mask}")


@dataclass(frozen=True)
class Broken(Whole):
    """Raises an error that is not a refusal."""

    def attend_all(self, q, k, v, mask, *, i, j, bias=None):
        raise TypeError("a slip\nof two lines")
