"""Residual blocks and stacks of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attnlab.mechanisms.base import Mechanism
from attnlab.modules.attention import NO_POSITION, Attention
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.feedforward import FeedForward
from attnlab.modules.norm import NORMS
from attnlab.modules.position import PositionEncoding
from attnlab.ops.layer import dropout
from attnlab.ops.mask import Full, KeyPadding, Places, QueryPadding
from attnlab.ops.tree import pytree


@dataclass(frozen=True)
class LayerConfig:
    """What the layers of a model have in common."""

    width: int
    heads: int
    feedforward: int
    activation: str
    norm: str
    norm_first: bool
    dropout: float
    key_heads: int | None = None
    biases: bool = True
    initialiser: str = "xavier"
    norm_eps: float = 1e-6

    def norm_layer(self) -> nnx.Module:
        """A norm of these sizes."""
        return NORMS[self.norm](self.width, self.norm_eps)

    @property
    def dense(self) -> Callable[..., Dense]:
        """Linear maps as this model has them."""
        return partial(Dense, bias=self.biases, initialiser=self.initialiser)

    def attention(self, key: PRNGKeyArray, mechanism: Mechanism) -> Attention:
        """An attention of these sizes."""
        return Attention(key, self.width, self.heads, mechanism, self.key_heads, self.dense)

    def forward(self, key: PRNGKeyArray) -> tuple[FeedForward, Sublayer] | tuple[None, None]:
        """A feed-forward layer of these sizes and what stands around it; None and None for a width of 0."""
        if self.feedforward == 0:
            return None, None
        layer = FeedForward(key, self.width, self.feedforward, self.activation, self.dropout, self.dense)
        return layer, Sublayer(self)


class Sublayer(nnx.Module):
    """x + dropout(f(norm(x))) with the norm first (Xiong et al. 2020), or norm(x + dropout(f(x))) (Vaswani 2017)."""

    def __init__(self, sizes: LayerConfig):
        self.norm = sizes.norm_layer()
        self.first, self.rate = sizes.norm_first, sizes.dropout

    def __call__(
        self, x: Float[Array, "T D"], f: Callable, key: PRNGKeyArray | None
    ) -> tuple[Float[Array, "T D"], Any]:
        """`f` answers (y, what else it knows); so does this."""
        y, known = f(self.norm(x) if self.first else x)
        y = x + dropout(y, self.rate, key)
        return (y if self.first else self.norm(y)), known


class EncoderLayer(nnx.Module):
    """Self-attention to both sides, then feed-forward where its width is not 0."""

    def __init__(self, key: PRNGKeyArray, sizes: LayerConfig, mechanism: Mechanism):
        self.attention = sizes.attention(fold_key(key, "attention"), mechanism)
        self.feedforward, self.around_feedforward = sizes.forward(fold_key(key, "feedforward"))
        self.around_attention = Sublayer(sizes)

    def __call__(
        self, x: Float[Array, "T D"], keep, position: PositionEncoding = NO_POSITION, key: PRNGKeyArray | None = None
    ):
        """One example; `keep` False is padding, None: there is none. Answers (x, looks)."""
        keys = _keys(key, 3)
        # Padding asks nothing either: a mechanism may summarise the queries.
        mask = Full() if keep is None else KeyPadding(keep) & QueryPadding(keep)
        x, seen = self.around_attention(x, lambda x: self.attention.attend(x, None, mask, position), keys[0])
        return apply_feedforward(self, x, keys[1:]), {"encoder": seen}


@pytree
@dataclass(frozen=True)
class Memory:
    """What a decoder reads besides itself: vectors [S D] (or what a layer made of them), and which are no padding."""

    vectors: Any
    keep: Any


class DecoderLayer(nnx.Module):
    """Causal self-attention, then cross-attention to a memory (where `cross` is given), then feed-forward likewise."""

    def __init__(self, key: PRNGKeyArray, sizes: LayerConfig, own: Mechanism, cross: Mechanism | None = None):
        self.attention = sizes.attention(fold_key(key, "attention"), own)
        self.cross = None if cross is None else sizes.attention(fold_key(key, "cross"), cross)
        self.feedforward, self.around_feedforward = sizes.forward(fold_key(key, "feedforward"))
        self.around_attention = Sublayer(sizes)
        self.around_cross = None if cross is None else Sublayer(sizes)

    def __call__(
        self,
        x: Float[Array, "T D"],
        keep,
        position: PositionEncoding = NO_POSITION,
        memory: Memory | None = None,
        key: PRNGKeyArray | None = None,
    ):
        """A whole sequence, teacher-forced; `keep` False is padding, None: there is none. Answers (x, looks)."""
        whole = lambda x: self.attention.causal(x, keep, position)
        if (cross := self._reading(memory)) is None or memory is None:
            return self._layer(x, whole, None, key)
        known, mask = cross.keys_values(memory.vectors), KeyPadding(memory.keep)
        mask = mask if keep is None else mask & QueryPadding(keep)
        return self._layer(x, whole, lambda x: cross.cross(x, known, mask), key)

    def start(self, length: int, dtype, memory: Memory | None = None) -> dict[str, Any]:
        """The state before the first token: what self-attention remembers, and the memory's keys and values."""
        own = {"own": self.attention.start(length, dtype)}
        if (cross := self._reading(memory)) is None or memory is None:
            return own
        return own | {"memory": cross.keys_values(memory.vectors)}

    def extend(
        self,
        x: Float[Array, "T D"],
        state: dict[str, Any],
        i: Int[Places, " T"],
        position: PositionEncoding,
        memory_keep,
    ):
        """New tokens at positions i, given the state. Answers (x, state)."""
        new = lambda x: self.attention.extend(x, state["own"], i, position)
        # At their true positions: what a mechanism sees must be what it saw in the whole sequence.
        cross = self.cross
        read = None if cross is None else lambda x: cross.cross(x, state["memory"], KeyPadding(memory_keep), i=i)
        x, known = self._layer(x, new, read, None)
        return x, {**state, "own": known["decoder"]}

    def _reading(self, memory: Memory | None) -> Attention | None:
        if (self.cross is None) != (memory is None):
            raise ValueError("a layer reads a memory where it has a cross-attention, and only there")
        return self.cross

    def _layer(self, x, own: Callable, read: Callable | None, key):
        keys = _keys(key, 4)
        x, first = self.around_attention(x, own, keys[0])
        looks = {"decoder": first}
        if read is not None and self.around_cross is not None:
            x, looks["cross"] = self.around_cross(x, read, keys[1])
        return apply_feedforward(self, x, keys[2:]), looks


def apply_feedforward(layer: Any, x: Float[Array, "T D"], keys: Any) -> Float[Array, "T D"]:
    """What a layer's feed-forward makes of it; where it has none, what it is."""
    if layer.feedforward is None:
        return x
    return layer.around_feedforward(x, lambda x: (layer.feedforward(x, keys[0]), None), keys[1])[0]


def stack_layers(create: Callable[[PRNGKeyArray], nnx.Module], key: PRNGKeyArray, layers: int) -> nnx.Module:
    """`layers` modules as one whose arrays have a leading axis: what `scan_layers` scans."""
    return jax.vmap(create)(jnp.stack([fold_key(key, str(n)) for n in range(layers)]))


def unstack_layers(layers: Any) -> list[Any]:
    """What `stack_layers` put together, layer by layer."""
    leaves, kind = jax.tree.flatten(layers)
    return [jax.tree.unflatten(kind, layer) for layer in zip(*leaves, strict=True)]


SHORT = 6  # layers of which each is compiled by itself: a loop would cost more than it saves


def scan_layers(
    layers: nnx.Module,
    x: Float[Array, "T D"],
    step: Callable,
    key: PRNGKeyArray | None,
    before: Float[Array, "L T D"] | None = None,
    remat: bool = False,
):
    """Scan `step(layer, x, key) -> (x, out)` up the layers; answers (x, outs).

    `before` is added to x before each layer. `remat` computes each layer again in the backward pass, which then needs
    the memory of one layer, and a tenth more time.
    """
    count = jax.tree.leaves(layers)[0].shape[0]
    keys = None if key is None else jax.random.split(key, count)

    def up(x, here):
        layer, key, place = here
        return step(layer, x if place is None else x + place.astype(x.dtype), key)

    # What is unrolled must be kept from being shared with the forward pass; inside a loop nothing is.
    unroll = count <= SHORT
    up = jax.checkpoint(up, prevent_cse=unroll) if remat else up
    return jax.lax.scan(up, x, (layers, keys, before), unroll=unroll)


def _keys(key: PRNGKeyArray | None, count: int) -> Any:
    return [None] * count if key is None else jax.random.split(key, count)
