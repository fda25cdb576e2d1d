"""The Transformer encoder-decoder (Vaswani et al. 2017), with any mechanism in each of its three attentions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.mechanisms import Mechanism
from attnlab.models.config import StackConfig
from attnlab.models.decoder import Decoder, Decoding, make_position
from attnlab.models.encoder import encoder_layers
from attnlab.models.shapes import Shape, TokenPairShape, check_shape
from attnlab.modules.block import Context
from attnlab.modules.dense import fold_key
from attnlab.modules.embed import Embed
from attnlab.modules.stack import first_values, scan_layers, stack_layers
from attnlab.ops.layer import split_keys
from attnlab.pattern import Pattern


@dataclass(frozen=True)
class Transformer(StackConfig):
    """Configuration of an encoder-decoder with `layers` encoder layers and `layers` decoder layers.

    The fields not listed here are those of `StackConfig`. `mechanism` serves every attention that has no mechanism of
    its own. With `shared` and `tied` the model has a single embedding table and no output matrix.

    The paper's model also has `norm_first=False`, without a final norm, and `dropout=0.1`.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    encoder: Mechanism | Pattern | None = None
    """Mechanism of the encoder's self-attention; must attend in both directions. None: `mechanism`."""
    decoder: Mechanism | Pattern | None = None
    """Mechanism of the decoder's self-attention; must have a causal form. None: `mechanism`."""
    cross: Mechanism | Pattern | None = None
    """Mechanism of the cross-attention; must support cross-attention and not mix queries. None: `mechanism`."""
    shared: bool = False
    """True: embed sources with the table of the targets. Source and target must have a joint vocabulary."""
    mechanism_fields: ClassVar[tuple[str, ...]] = ("encoder", "decoder", "cross")
    """The roles whose mechanism is set by a field of that name. If it is None, by `mechanism`."""

    @property
    def attentions(self) -> dict[str, Mechanism | Pattern]:
        """The mechanism of each of the three attentions."""
        return {name: getattr(self, name) or self.mechanism for name in self.mechanism_fields}

    def create(self, key: PRNGKeyArray, shape: Shape) -> TransformerNetwork:
        """Create a network for sequences of `shape` (`attnlab.tasks.Pairs`)."""
        shape = check_shape(self, shape, TokenPairShape)
        return TransformerNetwork(key, self, shape)


class TransformerNetwork(Decoder):
    """The network of a `Transformer`, for one example.

    A call applies teacher forcing to a target. `start` and `step` decode token by token.

    Raises:
        ValueError: `config.shared` is set and `shape` has no joint vocabulary.
    """

    def __init__(self, key: PRNGKeyArray, config: Transformer, shape: TokenPairShape):
        if config.shared and not shape.joint:
            raise ValueError("model.shared=True needs one vocabulary for both sides; set for example task.joint=True")
        super().__init__(key, config, shape.target_vocabulary, shape.target_length)
        self.source_position = make_position(key, config, "source_position", shape.source_length, causal=False)
        self.source = (
            None
            if config.shared
            else Embed(fold_key(key, "source"), shape.source_vocabulary, config.width, config.scale_embeddings)
        )
        self.encoder = stack_layers(encoder_layers(config), fold_key(key, "encoder"), config.layers)
        self.encoded = config.sizes.final_norm()

    def __call__(
        self,
        source: Int[Array, " S"],
        target: Int[Array, " T"],
        source_keep: Bool[Array, " S"],
        target_keep: Bool[Array, " T"],
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "T vocabulary"]:
        """Return the logits of every next target symbol.

        Args:
            source: Source ids.
            target: Target ids, for teacher forcing.
            source_keep: False marks padding of the source. Positions count padding, so it belongs after the source.
            target_keep: False marks padding of the target, likewise.
            key: Key for dropout. None means no dropout.

        Returns:
            Logits, at least float32.
        """
        return self.outputs_and_maps(source, target, source_keep, target_keep, key)[0]

    def hidden_states(self, source, target, source_keep, target_keep, key=None) -> tuple[Float[Array, "T D"], dict]:
        """Return the hidden states before the output map, and the attention maps.

        The maps are {"encoder" | "decoder" | "cross": [L H T S]}; a map is None if its mechanism is not observed.
        """
        keys = split_keys(key, 4)
        context, encoder_maps = self.encode(source, source_keep, keys[:2])
        x, decoder_maps = self.teacher_forced(target, target_keep, Context(context, source_keep), keys[2:])
        return x, encoder_maps | decoder_maps

    def encode(self, source, source_keep, keys=(None, None)) -> tuple[Float[Array, "S D"], dict]:
        """Return the context that the decoder attends to, and the encoder's attention maps. `keys` are for dropout."""
        position, i = self.source_position, np.arange(source.shape[0], dtype=np.int32)
        table = position.table(source.shape[0], self.dtype)
        symbols = self.target if self.source is None else self.source
        x = self.embed(symbols, source, position, i, table, keys[0])
        places, remat = position.per_layer(i, table), self.config.remat
        first = first_values(self.encoder, x, places)
        x, seen = scan_layers(self.encoder, x, source_keep, position, first, key=keys[1], places=places, remat=remat)
        return (x if self.encoded is None else self.encoded(x)), seen

    def start(self, source: Int[Array, " S"], source_keep: Bool[Array, " S"], length: int) -> Decoding:
        """Encode the source and return the state before the first target symbol, with room for `length` symbols."""
        return self.begin(length, Context(self.encode(source, source_keep)[0], source_keep))
