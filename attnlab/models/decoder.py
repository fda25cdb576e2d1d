"""The decoder of language models and encoder-decoders: an embedding, causal layers and an output map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from attnlab.mechanisms import Mechanism
from attnlab.models.config import StackConfig, layers_of_period
from attnlab.models.output_head import OutputHead
from attnlab.modules.block import Context, DecoderLayer
from attnlab.modules.dense import fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.layer_config import LayerConfig
from attnlab.modules.position import LayerPositions, PositionEncoding
from attnlab.modules.stack import first_values, scan_layers, stack_layers, unstack_layers
from attnlab.ops.layer import dropout
from attnlab.ops.mask import ArrayOrNumpy
from attnlab.ops.tree import pytree, static
from attnlab.pattern import Pattern, by_layer, period


@pytree
@dataclass(frozen=True)
class Decoding:
    """The state of decoding between two symbols."""

    layers: PyTree
    """A tuple of the layers' states. They are not stacked: a stacked array would be copied for every symbol."""
    keep: Bool[ArrayOrNumpy, " S"] | None
    """False marks padding of the context, [S]. None without a context."""
    table: Array | None
    """The table of the position encoding, or None."""
    i: Int[Array, ""]
    """Position of the next symbol."""
    length: int = static()
    """Number of symbols that the state has room for."""


class Decoder(OutputHead):
    """A stack of decoder layers with an embedding and an output map, for one example.

    It reads a context if the configuration has a cross-attention.

    Args:
        key: Key for the initial parameters.
        config: The configuration of the model.
        vocabulary: Number of symbols.
        length: Length of the longest sequence.

    Raises:
        ValueError: The position encoding does not support sequences of `length`.
    """

    def __init__(self, key: PRNGKeyArray, config: StackConfig, vocabulary: int, length: int):
        sizes, attentions = config.sizes, config.attentions
        self.config = config
        self.target_position = make_position(key, config, "target_position", length, causal=True)
        self.target = Embed(fold_key(key, "target"), vocabulary, config.width, config.scale_embeddings)
        roles = [attentions[name] for name in ("decoder", "cross") if name in attentions]
        self.decoder = stack_layers(
            [partial(_layer, *each) for each in layers_of_period(config, *roles)],
            fold_key(key, "decoder"),
            config.layers,
        )
        # With pre-norm, the output of the last layer is not normalised yet.
        self.decoded = sizes.final_norm()
        self.output = None if config.tied else sizes.dense(fold_key(key, "output"), config.width, vocabulary)

    def teacher_forced(
        self,
        tokens: Int[Array, " T"],
        keep: Bool[Array, " T"] | None,
        context: Context | None,
        keys: Sequence[PRNGKeyArray | None],
    ) -> tuple[Float[Array, "T D"], dict]:
        """Return the hidden states of a whole target, and the attention maps.

        Args:
            tokens: The target symbols.
            keep: False marks padding. Positions count padding, so it belongs after the sequence. None means no padding.
            context: What the cross-attention reads, or None.
            keys: Two keys for dropout, or two Nones.

        Returns:
            The hidden states before the output map, and the maps of all layers by role, each [L H T S] or None.
        """
        position, i = self.target_position, np.arange(tokens.shape[0], dtype=np.int32)
        table = position.table(tokens.shape[0], self.dtype)
        x = self.embed(self.target, tokens, position, i, table, keys[0])
        places, remat = position.per_layer(i, table), self.config.remat
        first = first_values(self.decoder, x, places)
        x, maps = scan_layers(self.decoder, x, keep, position, context, first, key=keys[1], places=places, remat=remat)
        return self._normed(x), maps

    def begin(self, length: int, context: Context | None = None) -> Decoding:
        """Return the state before the first symbol, with room for `length` symbols."""
        table = self.target_position.table(length, self.dtype)
        layers = tuple(layer.start(length, self.dtype, context) for layer in unstack_layers(self.decoder))
        keep = None if context is None else context.keep
        return Decoding(layers, keep, table, jnp.zeros((), jnp.int32), length)

    def step(self, state: Decoding, token: Int[Array, ""]) -> tuple[Float[Array, " vocabulary"], Decoding]:
        """Return the logits of the symbol after `token`, and the new state."""
        position, i = self.target_position, state.i[None]
        x = self.embed(self.target, token[None], position, i, state.table, None)
        places, layers = position.per_layer(i, state.table), []
        first = first_values(self.decoder, x, places)
        for n, (layer, known) in enumerate(zip(unstack_layers(self.decoder), state.layers, strict=True)):
            place = None if places is None else places[n]
            x, new = layer.extend(x, known, i, position.of_layer(n), state.keep, first, place)
            layers.append(new)
        return self.logits(self._normed(x))[0], replace(state, layers=tuple(layers), i=state.i + 1)

    @property
    def dtype(self) -> jnp.dtype:
        """The data type of the computation."""
        return jnp.dtype(self.config.dtype)

    def embed(
        self, embed: Embed, ids, position: PositionEncoding, i: Int[ArrayOrNumpy, " T"], table, key
    ) -> Float[Array, "T D"]:
        """Return the embeddings of symbols with their positions added, after dropout."""
        return dropout(position.add(embed(ids, self.dtype), i, table), self.config.dropout, key)

    def _normed(self, x):
        return x if self.decoded is None else self.decoded(x)


def _layer(sizes: LayerConfig, mechanisms: tuple[Mechanism, ...], key: PRNGKeyArray) -> DecoderLayer:
    return DecoderLayer(key, sizes, *mechanisms)


def make_position(key: PRNGKeyArray, config: StackConfig, name: str, length: int, causal: bool) -> PositionEncoding:
    """Create the position encoding of a configuration, for sequences up to `length`.

    Args:
        key: Key for the initial parameters.
        config: The configuration of the model.
        name: The name of the encoding in the model, from which its key is derived.
        length: Length of the longest sequence.
        causal: Whether queries see only earlier keys.

    Raises:
        ValueError: The encoding does not support that length.
    """
    key, encodings = fold_key(key, name), []
    for n, (each, layer) in enumerate(by_layer(config.position, config.attention)[: len(period(config.position))]):
        # What rotates or is added to scores belongs to heads, anything else to the model's vectors.
        heads = layer.mechanism_heads or config.heads
        of_heads = each.rotary or each.has_bias
        width = heads * layer.widths(config.width, config.heads)[0] if of_heads else config.width
        encodings.append(each.create(fold_key(key, str(n)) if n else key, width, heads, config.layers, causal))
    position = LayerPositions(encodings) if isinstance(config.position, Pattern) else encodings[0]
    # Abstract evaluation raises if the encoding does not support the length, and computes nothing.
    jax.eval_shape(lambda: position.table(length, jnp.dtype(config.dtype)))
    return position
