"""The Transformer encoder-decoder (Vaswani et al. 2017), with any mechanism in each of its three attentions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.mechanisms import Mechanism
from attnlab.models.config import StackConfig, check_shape
from attnlab.models.decoder import Decoder, Decoding, make_position
from attnlab.modules.block import EncoderLayer, Memory, scan_layers, stack_layers
from attnlab.modules.dense import fold_key
from attnlab.modules.embed import Embed


@dataclass(frozen=True)
class Transformer(StackConfig):
    """An encoder-decoder of `layers` + `layers` blocks.

    `mechanism` serves all three attentions, unless `encoder`, `decoder` or `cross` names another for its own: one that
    sees both sides, one that decodes, one that sees a memory. `shared` embeds sources as targets are embedded, which
    needs one vocabulary of both; with `tied` that is all there is. The other fields are those of `StackConfig`.

    Raises ValueError naming the field for what cannot work.
    """

    encoder: Mechanism | None = None
    decoder: Mechanism | None = None
    cross: Mechanism | None = None
    shared: bool = False

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """The mechanism of each of the three attentions."""
        return {name: getattr(self, name) or self.mechanism for name in ("encoder", "decoder", "cross")}

    def watched(self, watch) -> Transformer:
        """The same with each attention's mechanism put through `watch`."""
        return replace(self, **{name: watch(mechanism) for name, mechanism in self.attentions.items()})

    def create(self, key: PRNGKeyArray, shape: Any) -> TransformerNetwork:
        """A new network for sequences of that shape (`attnlab.tasks.Pairs`)."""
        check_shape(self, shape, "source_vocabulary", "target_vocabulary")
        return TransformerNetwork(key, self, shape)


class TransformerNetwork(Decoder):
    """The network of a `Transformer`; one example.

    Calling it teacher-forces a target; `start` and `step` decode token after token.
    """

    def __init__(self, key: PRNGKeyArray, config: Transformer, shape: Any):
        if config.shared and not shape.joint:
            raise ValueError("model.shared=True needs one vocabulary of both sides, such as by task.joint=True")
        super().__init__(key, config, shape.target_vocabulary, shape.target_length)
        sizes, mechanism = config.sizes, config.attentions["encoder"]
        self.source_position = make_position(key, config, "source_position", shape.source_length, causal=False)
        self.source: Any = (
            None
            if config.shared
            else Embed(fold_key(key, "source"), shape.source_vocabulary, config.width, config.scale_embeddings)
        )
        self.encoder = stack_layers(
            lambda key: EncoderLayer(key, sizes, mechanism), fold_key(key, "encoder"), config.layers
        )
        self.encoded = sizes.norm_layer() if config.norm_first else None

    def __call__(
        self,
        source: Int[Array, " S"],
        target: Int[Array, " T"],
        source_keep: Bool[Array, " S"],
        target_keep: Bool[Array, " T"],
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "T vocabulary"]:
        """Scores of every next target symbol, in float32 at least."""
        return self.look(source, target, source_keep, target_keep, key)[0]

    def hidden_with_maps(self, source, target, source_keep, target_keep, key=None) -> tuple[Float[Array, "T D"], dict]:
        """Vectors to score, and what watched attentions saw: {"encoder" | "decoder" | "cross": [L H T S] or None}."""
        keys = [None] * 4 if key is None else jax.random.split(key, 4)
        memory, seen = self.encode(source, source_keep, keys[:2])
        x, looks = self.teacher_forced(target, target_keep, Memory(memory, source_keep), keys[2:])
        return x, seen | looks

    def encode(self, source, source_keep, keys=(None, None)) -> tuple[Float[Array, "S D"], dict]:
        """The memory that the decoder attends to, and looks at the encoder's attention."""
        position, i = self.source_position, np.arange(source.shape[0], dtype=np.int32)
        table = position.table(source.shape[0], self.dtype)
        symbols = self.target if self.source is None else self.source
        x = self.embed(symbols, source, position, i, table, keys[0])
        step = lambda layer, x, key: layer(x, source_keep, position, key)
        x, seen = scan_layers(self.encoder, x, step, keys[1], position.per_layer(i, table), remat=self.config.remat)
        return (x if self.encoded is None else self.encoded(x)), seen

    def start(self, source: Int[Array, " S"], source_keep: Bool[Array, " S"], length: int) -> Decoding:
        """The state before the first target symbol, with room for `length` of them."""
        return self.begin(length, Memory(self.encode(source, source_keep)[0], source_keep))
