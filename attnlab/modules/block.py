"""Residual layers of attention and feed-forward blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from attnlab.documented import Documented
from attnlab.mechanisms.base import Mechanism
from attnlab.modules.attention import NO_POSITION, Attention
from attnlab.modules.dense import Dense, fold_key
from attnlab.modules.feedforward import FeedForward
from attnlab.modules.norm import NORMS
from attnlab.modules.position import PositionEncoding
from attnlab.ops.layer import dropout, split_keys
from attnlab.ops.mask import Full, KeyPadding, Places, QueryPadding
from attnlab.ops.tree import pytree


@dataclass(frozen=True)
class LayerConfig(metaclass=Documented):
    """The configuration that all layers of a model share."""

    width: int
    """Size of the vectors."""
    heads: int
    """Number of query heads."""
    feedforward: int
    """Width of the hidden layer of the feed-forward block. 0: no feed-forward block."""
    activation: str
    """Activation of the feed-forward block: a key of `attnlab.ops.layer.ACTIVATIONS`, or "swiglu"."""
    norm: str
    """Kind of normalisation, a key of `attnlab.modules.norm.NORMS`."""
    norm_first: bool
    """True: pre-norm. False: post-norm."""
    dropout: float
    """Dropout probability."""
    key_heads: int | None = None
    """Number of key and value heads. None: `heads`."""
    biases: bool = True
    """False: linear maps have no bias."""
    initialiser: str = "xavier"
    """Initial distribution of weights, a key of `attnlab.modules.dense.INITIALISERS`."""
    norm_eps: float = 1e-6
    """The ε that the norms add to the variance."""

    def norm_layer(self) -> nnx.Module:
        """Create a norm."""
        return NORMS[self.norm](self.width, self.norm_eps)

    @property
    def dense(self) -> Callable[..., Dense]:
        """The constructor of linear maps, with this bias and initialiser."""
        return partial(Dense, bias=self.biases, initialiser=self.initialiser)

    def attention(self, key: PRNGKeyArray, mechanism: Mechanism) -> Attention:
        """Create a multi-head attention."""
        return Attention(key, self.width, self.heads, mechanism, self.key_heads, self.dense)

    def forward(self, key: PRNGKeyArray) -> tuple[FeedForward, Residual] | tuple[None, None]:
        """Create a feed-forward block and the residual around it. Returns (None, None) if `feedforward` is 0."""
        if self.feedforward == 0:
            return None, None
        layer = FeedForward(key, self.width, self.feedforward, self.activation, self.dropout, self.dense)
        return layer, Residual(self)


class Residual(nnx.Module):
    """A residual connection with norm and dropout around a function f.

    Pre-norm: x + dropout(f(norm(x))) (Xiong et al. 2020). Post-norm: norm(x + dropout(f(x))) (Vaswani et al. 2017).
    A layer calls `y = f(residual.before(x))` and then `residual.after(x, y, key)`.
    """

    def __init__(self, sizes: LayerConfig):
        self.norm = sizes.norm_layer()
        self.first, self.rate = sizes.norm_first, sizes.dropout

    def before(self, x: Float[Array, "T D"]) -> Float[Array, "T D"]:
        """Return the input of f."""
        return self.norm(x) if self.first else x

    def after(self, x: Float[Array, "T D"], y: Float[Array, "T D"], key: PRNGKeyArray | None) -> Float[Array, "T D"]:
        """Return the sum of x and the output y of f. `key` None means no dropout."""
        y = x + dropout(y, self.rate, key)
        return y if self.first else self.norm(y)


class FeedForwardLayer(nnx.Module):
    """A layer that ends with a feed-forward block, or has none."""

    feedforward: FeedForward | None
    """The feed-forward block."""
    around_feedforward: Residual | None
    """The residual around it."""

    def apply_feedforward(self, x: Float[Array, "T D"], keys: Sequence[PRNGKeyArray | None]) -> Float[Array, "T D"]:
        """Apply the feed-forward block and its residual. Returns x unchanged without a block."""
        if self.feedforward is None or self.around_feedforward is None:
            return x
        y = self.feedforward(self.around_feedforward.before(x), keys[0])
        return self.around_feedforward.after(x, y, keys[1])


class EncoderLayer(FeedForwardLayer):
    """An encoder layer: bidirectional self-attention, then a feed-forward block unless its width is 0."""

    def __init__(self, key: PRNGKeyArray, sizes: LayerConfig, mechanism: Mechanism):
        self.attention = sizes.attention(fold_key(key, "attention"), mechanism)
        self.feedforward, self.around_feedforward = sizes.forward(fold_key(key, "feedforward"))
        self.around_attention = Residual(sizes)

    def __call__(
        self, x: Float[Array, "T D"], keep, position: PositionEncoding = NO_POSITION, key: PRNGKeyArray | None = None
    ):
        """Apply the layer to one example.

        Args:
            x: The sequence.
            keep: False marks padding, [T]. None means no padding.
            position: The position encoding.
            key: Key for dropout. None means no dropout.

        Returns:
            The new x [T D], and the maps {"encoder": [H T T], or None without an observer}.
        """
        keys = split_keys(key, 3)
        # Padded queries are masked too, because a mechanism may summarise the queries.
        mask = Full() if keep is None else KeyPadding(keep) & QueryPadding(keep)
        y, maps = self.attention.attend(self.around_attention.before(x), None, mask, position)
        x = self.around_attention.after(x, y, keys[0])
        return self.apply_feedforward(x, keys[1:]), {"encoder": maps}


@pytree
@dataclass(frozen=True)
class Memory:
    """The memory that a decoder's cross-attention reads."""

    vectors: PyTree
    """The vectors [S D], or what a model computes from them."""
    keep: Bool[Places, " S"]
    """False marks padding, [S]."""


class DecoderLayer(FeedForwardLayer):
    """A decoder layer: causal self-attention, cross-attention to a memory, and a feed-forward block.

    There is no cross-attention if `cross` is None, and no feed-forward block if its width is 0.
    """

    def __init__(self, key: PRNGKeyArray, sizes: LayerConfig, own: Mechanism, cross: Mechanism | None = None):
        self.attention = sizes.attention(fold_key(key, "attention"), own)
        self.cross = None if cross is None else sizes.attention(fold_key(key, "cross"), cross)
        self.feedforward, self.around_feedforward = sizes.forward(fold_key(key, "feedforward"))
        self.around_attention = Residual(sizes)
        self.around_cross = None if cross is None else Residual(sizes)

    def __call__(
        self,
        x: Float[Array, "T D"],
        keep,
        position: PositionEncoding = NO_POSITION,
        memory: Memory | None = None,
        key: PRNGKeyArray | None = None,
    ):
        """Apply the layer to a whole sequence (teacher forcing).

        Args:
            x: The sequence.
            keep: False marks padding, [T]. None means no padding.
            position: The position encoding.
            memory: The memory; required if the layer has a cross-attention, and only then.
            key: Key for dropout. None means no dropout.

        Returns:
            The new x [T D], and the maps {"decoder": [H T T], "cross": [H T S]}, each None without an observer.
            "cross" is missing without a memory.

        Raises:
            ValueError: There is a memory without a cross-attention, or a cross-attention without a memory.
        """
        self._check(memory)
        keys = split_keys(key, 4)
        y, own = self.attention.causal(self.around_attention.before(x), keep, position)
        x, maps = self.around_attention.after(x, y, keys[0]), {"decoder": own}
        if self.cross is not None and self.around_cross is not None and memory is not None:
            known, mask = self.cross.keys_values(memory.vectors), KeyPadding(memory.keep)
            mask = mask if keep is None else mask & QueryPadding(keep)
            i = np.arange(len(x), dtype=np.int32)
            y, maps["cross"] = self.cross.cross(self.around_cross.before(x), known, mask, i=i)
            x = self.around_cross.after(x, y, keys[1])
        return self.apply_feedforward(x, keys[2:]), maps

    def start(self, length: int, dtype, memory: Memory | None = None) -> dict[str, PyTree]:
        """Return the state before the first token: "own" of the self-attention, and the projected "memory" if any."""
        self._check(memory)
        own = {"own": self.attention.start(length, dtype)}
        if self.cross is None or memory is None:
            return own
        return own | {"memory": self.cross.keys_values(memory.vectors)}

    def extend(
        self,
        x: Float[Array, "T D"],
        state: dict[str, PyTree],
        i: Int[Places, " T"],
        position: PositionEncoding,
        memory_keep,
    ):
        """Apply the layer to new tokens at positions i, given the state of earlier ones. Returns (x, state)."""
        y, own = self.attention.extend(self.around_attention.before(x), state["own"], i, position)
        x = self.around_attention.after(x, y, None)
        if self.cross is not None and self.around_cross is not None:
            # Pass the true positions, so that a mechanism computes the same as in the whole sequence.
            y, _ = self.cross.cross(self.around_cross.before(x), state["memory"], KeyPadding(memory_keep), i=i)
            x = self.around_cross.after(x, y, None)
        return self.apply_feedforward(x, (None, None)), {**state, "own": own}

    def _check(self, memory: Memory | None) -> None:
        if (self.cross is None) != (memory is None):
            raise ValueError(
                "expected no memory, because the layer has no cross-attention"
                if self.cross is None
                else "expected a memory, because the layer has cross-attention"
            )
