"""What writes a sequence: an embedding, causal layers, scores of the next symbol."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.models.config import StackConfig
from attnlab.models.output_head import OutputHead
from attnlab.modules.block import DecoderLayer, Memory, scan_layers, stack_layers, unstack_layers
from attnlab.modules.dense import fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.position import PositionEncoding
from attnlab.ops.layer import dropout
from attnlab.ops.mask import Places
from attnlab.ops.tree import pytree, static


@pytree
@dataclass(frozen=True)
class Decoding:
    """What is known between two symbols: every layer's state, the memory's padding, the table of positions, the next.

    There is room for `length` symbols. The states are apart: one array of all would be copied for every symbol.
    """

    layers: Any
    keep: Any
    table: Any
    i: Any
    length: int = static()


class Decoder(OutputHead):
    """The half of a network that writes; one example. Reads a memory where the config has a cross-attention.

    Raises ValueError where the positions end before `length`, the longest sequence there will be.
    """

    def __init__(self, key: PRNGKeyArray, config: StackConfig, vocabulary: int, length: int):
        sizes, attentions = config.sizes, config.attentions
        self.config = config
        self.target_position = make_position(key, config, "target_position", length, causal=True)
        self.target = Embed(fold_key(key, "target"), vocabulary, config.width, config.scale_embeddings)
        self.decoder = stack_layers(
            lambda key: DecoderLayer(key, sizes, attentions["decoder"], attentions.get("cross")),
            fold_key(key, "decoder"),
            config.layers,
        )
        # With the norm first, what leaves the last block has not been normed yet.
        self.decoded = sizes.norm_layer() if config.norm_first else None
        self.output = None if config.tied else sizes.dense(fold_key(key, "output"), config.width, vocabulary)

    def teacher_forced(
        self,
        tokens: Int[Array, " T"],
        keep: Bool[Array, " T"] | None,
        memory: Memory | None,
        keys: Any,
    ) -> tuple[Float[Array, "T D"], dict]:
        """What next symbols are scored by, given those before, and looks by layer; two keys for dropout, or Nones."""
        position, i = self.target_position, np.arange(tokens.shape[0], dtype=np.int32)
        table = position.table(tokens.shape[0], self.dtype)
        x = self.embed(self.target, tokens, position, i, table, keys[0])
        step = lambda layer, x, key: layer(x, keep, position, memory, key)
        x, looks = scan_layers(self.decoder, x, step, keys[1], position.per_layer(i, table), remat=self.config.remat)
        return self._normed(x), looks

    def begin(self, length: int, memory: Memory | None = None) -> Decoding:
        """The state before the first symbol, with room for `length` of them."""
        table = self.target_position.table(length, self.dtype)
        layers = tuple(layer.start(length, self.dtype, memory) for layer in unstack_layers(self.decoder))
        keep = None if memory is None else memory.keep
        return Decoding(layers, keep, table, jnp.zeros((), jnp.int32), length)

    def step(self, state: Decoding, token: Int[Array, ""]) -> tuple[Float[Array, " vocabulary"], Decoding]:
        """Scores of the symbol after `token`, and the state with it."""
        position, i = self.target_position, state.i[None]
        x = self.embed(self.target, token[None], position, i, state.table, None)
        before, layers = position.per_layer(i, state.table), []
        for n, (layer, known) in enumerate(zip(unstack_layers(self.decoder), state.layers, strict=True)):
            x = x if before is None else x + before[n].astype(x.dtype)
            x, new = layer.extend(x, known, i, position, state.keep)
            layers.append(new)
        return self.logits(self._normed(x))[0], replace(state, layers=tuple(layers), i=state.i + 1)

    @property
    def dtype(self) -> Any:
        """What it computes in."""
        return jnp.dtype(self.config.dtype)

    def embed(
        self, embed: Embed, ids, position: PositionEncoding, i: Int[Places, " T"], table, key
    ) -> Float[Array, "T D"]:
        """Symbols as vectors that know where they stand."""
        return dropout(position.add(embed(ids, self.dtype), i, table), self.config.dropout, key)

    def _normed(self, x):
        return x if self.decoded is None else self.decoded(x)


def make_position(key: PRNGKeyArray, config: StackConfig, name: str, length: int, causal: bool) -> Any:
    """The config's position, made for a stack of its layers and sequences of that length."""
    position = config.position.create(fold_key(key, name), config.width, config.heads, config.layers, causal)
    # Asked for its shape alone: raises where the position ends before that length, and works nothing out.
    jax.eval_shape(lambda: position.table(length, jnp.dtype(config.dtype)))
    return position
