"""Residual blocks and stacks of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.modules.attention import Attention
from attnlab.modules.dense import child
from attnlab.modules.feedforward import FeedForward
from attnlab.modules.norm import NORMS
from attnlab.ops.layer import dropout
from attnlab.ops.mask import Kept


@dataclass(frozen=True)
class Sizes:
    """What the layers of a model have in common."""

    width: int
    heads: int
    feedforward: int
    activation: str
    norm: str
    norm_first: bool
    dropout: float


class Sublayer(nnx.Module):
    """x + dropout(f(norm(x))) with the norm first (Xiong et al. 2020), or norm(x + dropout(f(x))) (Vaswani 2017)."""

    def __init__(self, sizes: Sizes):
        self.norm = NORMS[sizes.norm](sizes.width)
        self.first, self.rate = sizes.norm_first, sizes.dropout

    def __call__(
        self, x: Float[Array, "T D"], f: Callable, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, "T D"], Any]:
        """`f` answers (y, what else it knows); so does this."""
        y, known = f(self.norm(x) if self.first else x)
        y = x + dropout(y, self.rate, key)
        return (y if self.first else self.norm(y)), known


class EncoderLayer(nnx.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, key: PRNGKeyArray, sizes: Sizes, mechanism: Mechanism, position: Any):
        self.attention = Attention(child(key, "attention"), sizes.width, sizes.heads, mechanism, position)
        self.feedforward = _feedforward(key, sizes)
        self.around_attention, self.around_feedforward = Sublayer(sizes), Sublayer(sizes)

    def __call__(self, x: Float[Array, "T D"], keep, key: PRNGKeyArray | None = None):
        """One example; `keep` False is padding. Answers (x, looks)."""
        keys = _keys(key, 3)
        x, seen = self.around_attention(x, lambda x: self.attention.attend(x, mask=Kept(keep)), keys[0])
        x, _ = self.around_feedforward(x, lambda x: (self.feedforward(x, keys[1]), None), keys[2])
        return x, {"encoder": seen}


class DecoderLayer(nnx.Module):
    """Causal self-attention, then cross-attention to a memory, then feed-forward."""

    def __init__(self, key: PRNGKeyArray, sizes: Sizes, own: Mechanism, cross: Mechanism, position: Any):
        self.attention = Attention(child(key, "attention"), sizes.width, sizes.heads, own, position)
        self.cross = Attention(child(key, "cross"), sizes.width, sizes.heads, cross)
        self.feedforward = _feedforward(key, sizes)
        self.around_attention, self.around_cross, self.around_feedforward = (Sublayer(sizes) for _ in range(3))

    def __call__(self, x: Float[Array, "T D"], memory: Float[Array, "S D"], keep, memory_keep, key=None):
        """A whole target, teacher-forced. Answers (x, looks)."""
        whole = lambda x: self.attention.whole(x, keep)
        return self._layer(x, whole, self.cross.remember(memory), memory_keep, key)

    def start(self, memory: Float[Array, "S D"], length: int) -> dict[str, Any]:
        """The state before the first token: what self-attention remembers, and the memory's keys and values."""
        own = self.attention.start(length, memory.shape[1], memory.dtype)
        return {"own": own, "memory": self.cross.remember(memory)}

    def extend(self, x: Float[Array, "T D"], state: dict[str, Any], memory_keep, i):
        """New tokens at positions i, given the state. Answers (x, state)."""
        new = lambda x: self.attention.extend(x, state["own"], i)
        x, known = self._layer(x, new, state["memory"], memory_keep, None)
        return x, {**state, "own": known["decoder"]}

    def _layer(self, x, own: Callable, memory: dict[str, Array], memory_keep, key):
        keys = _keys(key, 4)
        x, first = self.around_attention(x, own, keys[0])
        x, second = self.around_cross(x, lambda x: self.cross.read(x, memory, Kept(memory_keep)), keys[1])
        x, _ = self.around_feedforward(x, lambda x: (self.feedforward(x, keys[2]), None), keys[3])
        return x, {"decoder": first, "cross": second}


def stack(create: Callable[[PRNGKeyArray], nnx.Module], key: PRNGKeyArray, layers: int) -> nnx.Module:
    """`layers` modules as one whose arrays have a leading axis: what `climb` scans."""
    return jax.vmap(create)(jnp.stack([child(key, str(n)) for n in range(layers)]))


def climb(layers: nnx.Module, x: Array, step: Callable, key: PRNGKeyArray | None, *per_layer: Any):
    """Scan `step(layer, x, key, *per_layer) -> (x, out)` up the layers; answers (x, outs).

    Each layer is recomputed in the backward pass: on a CPU this costs less than fetching what it stored.
    """
    count = jax.tree.leaves(layers)[0].shape[0]
    keys = None if key is None else jax.random.split(key, count)

    def up(x, here):
        layer, key, rest = here
        return step(layer, x, key, *rest)

    # Inside a scan nothing can be shared with the forward pass anyway.
    return jax.lax.scan(jax.checkpoint(up, prevent_cse=False), x, (layers, keys, per_layer))


def _feedforward(key, sizes: Sizes) -> FeedForward:
    return FeedForward(child(key, "feedforward"), sizes.width, sizes.feedforward, sizes.activation, sizes.dropout)


def _keys(key: PRNGKeyArray | None, count: int) -> Any:
    return [None] * count if key is None else jax.random.split(key, count)
