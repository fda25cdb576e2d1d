"""Residual layers of attention and feed-forward blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from attnlab.mechanisms.base import Mechanism
from attnlab.modules.attention import NO_POSITION, Attention
from attnlab.modules.dense import fold_key
from attnlab.modules.feedforward import FeedForward
from attnlab.modules.layer_config import LayerConfig
from attnlab.modules.position import PositionEncoding
from attnlab.modules.residual import Residual
from attnlab.ops.layer import split_keys
from attnlab.ops.mask import ArrayOrNumpy, Full, KeyPadding, QueryPadding
from attnlab.ops.tree import pytree


class FeedForwardLayer(nnx.Module):
    """A layer that ends with a feed-forward block, or has one in parallel with its attention, or none."""

    feedforward: FeedForward | None
    """The feed-forward block."""
    around_feedforward: Residual | None
    """The residual around it, or None if it stands beside the attention."""

    def add_parallel(
        self, y: Float[Array, "T D"], x: Float[Array, "T D"], key: PRNGKeyArray | None
    ) -> Float[Array, "T D"]:
        """Return y plus the output of a feed-forward block beside the attention, or y without such a block.

        Args:
            y: Output of the attention.
            x: Input of the attention, which is that of the feed-forward block as well.
            key: Key for dropout. None means no dropout.
        """
        if self.feedforward is None or self.around_feedforward is not None:
            return y
        return y + self.feedforward(x, key)

    def apply_feedforward(self, x: Float[Array, "T D"], keys: Sequence[PRNGKeyArray | None]) -> Float[Array, "T D"]:
        """Apply the feed-forward block and its residual. Returns x unchanged without a block after the attention."""
        if self.feedforward is None or self.around_feedforward is None:
            return x
        y = self.feedforward(self.around_feedforward.before(x), keys[0])
        return self.around_feedforward.after(x, y, keys[1])


class SelfAttentionLayer(FeedForwardLayer):
    """A layer that begins with self-attention."""

    attention: Attention
    """The self-attention."""
    around_attention: Residual
    """The residual around it."""

    def values(self, x: Float[Array, "T D"], place: Float[Array, "T D"] | None = None) -> Float[Array, "T F"]:
        """Return the projected values of the self-attention for the layer's input x.

        Args:
            x: Input of the layer.
            place: Vectors to add to the inputs of the self-attention, or None.
        """
        return self.attention.values(plus(self.around_attention.before(x), place))


def plus(x: Float[Array, "T D"], place: Float[Array, "T D"] | None) -> Float[Array, "T D"]:
    """Return x + place in the dtype of x, or x without a place."""
    return x if place is None else x + place.astype(x.dtype)


class EncoderLayer(SelfAttentionLayer):
    """An encoder layer: bidirectional self-attention, then a feed-forward block unless its width is 0."""

    def __init__(self, key: PRNGKeyArray, sizes: LayerConfig, mechanism: Mechanism):
        self.attention = sizes.attention(fold_key(key, "attention"), mechanism)
        self.feedforward, self.around_feedforward = sizes.forward(fold_key(key, "feedforward"))
        self.around_attention = sizes.residual()

    def __call__(
        self,
        x: Float[Array, "T D"],
        keep,
        position: PositionEncoding = NO_POSITION,
        first: Float[Array, "T F"] | None = None,
        key: PRNGKeyArray | None = None,
        place: Float[Array, "T D"] | None = None,
    ):
        """Apply the layer to one example.

        Args:
            x: The sequence.
            keep: False marks padding, [T]. None means no padding.
            position: The position encoding.
            first: Projected values of the first layer, for a value residual.
            key: Key for dropout. None means no dropout.
            place: Vectors to add to the inputs of the self-attention, [T D]. They do not enter the residual stream.

        Returns:
            The new x [T D], and the maps {"encoder": [H T T], or None without an observer}.
        """
        keys = split_keys(key, 3)
        # Padded queries are masked too, because a mechanism may summarise the queries.
        mask = Full() if keep is None else KeyPadding(keep) & QueryPadding(keep)
        inputs = self.around_attention.before(x)
        y, maps = self.attention.attend(plus(inputs, place), None, mask, position, first=first, key=keys[0])
        x = self.around_attention.after(x, self.add_parallel(y, inputs, keys[1]), keys[0])
        return self.apply_feedforward(x, keys[1:]), {"encoder": maps}


@pytree
@dataclass(frozen=True)
class Context:
    """What a decoder's cross-attention reads: the output of an encoder."""

    vectors: PyTree
    """The vectors [S D], or what a model computes from them."""
    keep: Bool[ArrayOrNumpy, " S"]
    """False marks padding, [S]."""


class DecoderLayer(SelfAttentionLayer):
    """A decoder layer: causal self-attention, cross-attention to a context, and a feed-forward block.

    There is no cross-attention if `cross` is None, and no feed-forward block if its width is 0.
    """

    def __init__(self, key: PRNGKeyArray, sizes: LayerConfig, own: Mechanism, cross: Mechanism | None = None):
        self.attention = sizes.attention(fold_key(key, "attention"), own)
        self.cross = None if cross is None else sizes.cross_attention(fold_key(key, "cross"), cross)
        self.feedforward, self.around_feedforward = sizes.forward(fold_key(key, "feedforward"))
        self.around_attention = sizes.residual()
        self.around_cross = None if cross is None else sizes.residual()

    def __call__(
        self,
        x: Float[Array, "T D"],
        keep,
        position: PositionEncoding = NO_POSITION,
        context: Context | None = None,
        first: Float[Array, "T F"] | None = None,
        key: PRNGKeyArray | None = None,
        place: Float[Array, "T D"] | None = None,
    ):
        """Apply the layer to a whole sequence (teacher forcing).

        Args:
            x: The sequence.
            keep: False marks padding, [T]. None means no padding.
            position: The position encoding.
            context: What the cross-attention reads; required if the layer has a cross-attention, and only then.
            first: Projected values of the first layer, for a value residual.
            key: Key for dropout. None means no dropout.
            place: Vectors to add to the inputs of the self-attention, [T D]. They do not enter the residual stream.

        Returns:
            The new x [T D], and the maps {"decoder": [H T T], "cross": [H T S]}, each None without an observer.
            "cross" is missing without a context.

        Raises:
            ValueError: There is a context without a cross-attention, or a cross-attention without a context.
        """
        self._check(context)
        keys = split_keys(key, 4)
        inputs = self.around_attention.before(x)
        y, own = self.attention.causal(plus(inputs, place), keep, position, first, keys[0])
        x, maps = self.around_attention.after(x, self.add_parallel(y, inputs, keys[2]), keys[0]), {"decoder": own}
        if self.cross is not None and self.around_cross is not None and context is not None:
            known, mask = self.cross.keys_values(context.vectors), KeyPadding(context.keep)
            mask = mask if keep is None else mask & QueryPadding(keep)
            i = np.arange(len(x), dtype=np.int32)
            y, maps["cross"] = self.cross.cross(self.around_cross.before(x), known, mask, i=i, key=keys[1])
            x = self.around_cross.after(x, y, keys[1])
        return self.apply_feedforward(x, keys[2:]), maps

    def start(self, length: int, dtype, context: Context | None = None) -> dict[str, PyTree]:
        """Return the state before the first token: "own" of the self-attention, and the projected "context" if any."""
        self._check(context)
        own = {"own": self.attention.start(length, dtype)}
        if self.cross is None or context is None:
            return own
        return own | {"context": self.cross.keys_values(context.vectors)}

    def extend(
        self,
        x: Float[Array, "T D"],
        state: dict[str, PyTree],
        i: Int[ArrayOrNumpy, " T"],
        position: PositionEncoding,
        context_keep,
        first: Float[Array, "T F"] | None = None,
        place: Float[Array, "T D"] | None = None,
    ):
        """Apply the layer to new tokens at positions i, given the state of earlier ones. Returns (x, state)."""
        inputs = self.around_attention.before(x)
        y, own = self.attention.extend(plus(inputs, place), state["own"], i, position, first)
        x = self.around_attention.after(x, self.add_parallel(y, inputs, None), None)
        if self.cross is not None and self.around_cross is not None:
            # Pass the true positions, so that a mechanism computes the same as in the whole sequence.
            y, _ = self.cross.cross(self.around_cross.before(x), state["context"], KeyPadding(context_keep), i=i)
            x = self.around_cross.after(x, y, None)
        return self.apply_feedforward(x, (None, None)), {**state, "own": own}

    def _check(self, context: Context | None) -> None:
        if (self.cross is None) != (context is None):
            raise ValueError(
                "expected no context, because the layer has no cross-attention"
                if self.cross is None
                else "expected a context, because the layer has cross-attention"
            )
