"""The Transformer encoder-decoder (Vaswani et al. 2017), with any mechanism in each of its three attentions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attnlab.mechanisms import Mechanism, Softmax
from attnlab.modules.block import DecoderLayer, EncoderLayer, Sizes, climb, stack
from attnlab.modules.dense import Dense, child
from attnlab.modules.embed import Embed
from attnlab.modules.norm import NORMS
from attnlab.modules.position import Position, Sinusoidal
from attnlab.ops.layer import dropout
from attnlab.ops.precision import wide


@dataclass(frozen=True)
class Transformer:
    """An encoder-decoder of `layers` + `layers` blocks.

    `mechanism` serves all three attentions, unless `encoder`, `decoder` or `cross` names another for its own.
    `feedforward` None is four times the width. `norm_first` is pre-norm. `tied` scores outputs against the target
    embedding. `dtype` is what it computes in; parameters are float32.

    Raises ValueError naming the field for what cannot work.
    """

    width: int = 64
    heads: int = 4
    layers: int = 2
    feedforward: int | None = None
    mechanism: Mechanism = Softmax()
    encoder: Mechanism | None = None
    decoder: Mechanism | None = None
    cross: Mechanism | None = None
    position: Position = Sinusoidal()
    norm: Literal["layer", "rms"] = "layer"
    norm_first: bool = True
    activation: Literal["relu", "gelu", "silu", "swiglu"] = "relu"
    dropout: float = 0.0
    tied: bool = False
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"

    def __post_init__(self):
        for name in ("width", "heads", "layers"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"model.{name}={value} must be at least 1")
        if self.width % self.heads:
            raise ValueError(f"model.heads={self.heads} must divide model.width={self.width}")
        if self.feedforward is not None and self.feedforward < 1:
            raise ValueError(f"model.feedforward={self.feedforward} must be at least 1")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"model.dropout={self.dropout} must be at least 0 and below 1")
        for name, mechanism in {"mechanism": self.mechanism, **self.attentions}.items():
            if not isinstance(mechanism, Mechanism):
                raise ValueError(f"model.{name}={mechanism!r} must be a mechanism, such as those of attnlab.MECHANISMS")
        if not isinstance(self.position, Position):
            raise ValueError(f"model.position={self.position!r} must be a position, such as those of attnlab.POSITIONS")
        # A position refuses widths it cannot serve, a mechanism turns it cannot honour: now, not in training.
        self.position.check(self.width, self.heads)
        for name, mechanism in self.attentions.items():
            if name != "cross" and self.position.turning and not mechanism.turns:
                raise ValueError(
                    f"model.position={self.position} cannot be honoured by the {name}'s {mechanism}: choose another"
                )
        if not self.attentions["decoder"].stateful:
            raise ValueError(f"model.decoder={self.attentions['decoder']} has no causal form: it cannot decode")

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """The mechanism of each of the three attentions."""
        return {name: getattr(self, name) or self.mechanism for name in ("encoder", "decoder", "cross")}

    def watched(self, watch) -> Transformer:
        """The same with each attention's mechanism put through `watch`."""
        return replace(self, **{name: watch(mechanism) for name, mechanism in self.attentions.items()})

    def create(self, key: PRNGKeyArray, shape: Any) -> TransformerNetwork:
        """A new network for sequences of that shape (`attnlab.tasks.base.Pairs`)."""
        return TransformerNetwork(key, self, shape.source_vocabulary, shape.target_vocabulary)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Decoding:
    """What is known between two target symbols: every layer's state, the source's padding, the next position.

    There is room for `length` symbols.
    """

    layers: Any
    keep: Any
    i: Any
    length: int = field(metadata={"static": True})


class TransformerNetwork(nnx.Module):
    """The network of a `Transformer`; one example.

    Calling it teacher-forces a target; `start` and `step` decode token after token.
    """

    def __init__(self, key: PRNGKeyArray, config: Transformer, source_vocabulary: int, target_vocabulary: int):
        self.config = config
        width, attentions = config.width, config.attentions
        sizes = Sizes(
            width,
            config.heads,
            config.feedforward or 4 * width,
            config.activation,
            config.norm,
            config.norm_first,
            config.dropout,
        )
        position = config.position.create(child(key, "position"), width, config.heads)
        self.position = position
        self.source = Embed(child(key, "source"), source_vocabulary, width)
        self.target = Embed(child(key, "target"), target_vocabulary, width)
        self.encoder = stack(
            lambda key: EncoderLayer(key, sizes, attentions["encoder"], position),
            child(key, "encoder"),
            config.layers,
        )
        self.decoder = stack(
            lambda key: DecoderLayer(key, sizes, attentions["decoder"], attentions["cross"], position),
            child(key, "decoder"),
            config.layers,
        )
        # With the norm first, what leaves the last block has not been normed yet.
        self.encoded, self.decoded = (NORMS[config.norm](width) if config.norm_first else None for _ in range(2))
        self.output = None if config.tied else Dense(child(key, "output"), width, target_vocabulary)

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

    def look(self, source, target, source_keep, target_keep, key=None) -> tuple[Float[Array, "T vocabulary"], dict]:
        """The scores, and what watched attentions saw: {"encoder" | "decoder" | "cross": [L H T S] or None}."""
        keys = [None] * 4 if key is None else jax.random.split(key, 4)
        memory, seen = self.encode(source, source_keep, keys[:2])
        x = self._embed(self.target, target, jnp.arange(target.shape[0], dtype=jnp.int32), keys[2])
        step = lambda layer, x, key: layer(x, memory, target_keep, source_keep, key)
        x, looks = climb(self.decoder, x, step, keys[3])
        return self._score(x), seen | looks

    def encode(self, source, source_keep, keys=(None, None)) -> tuple[Float[Array, "S D"], dict]:
        """The memory that the decoder attends to, and looks at the encoder's attention."""
        x = self._embed(self.source, source, jnp.arange(source.shape[0], dtype=jnp.int32), keys[0])
        x, seen = climb(self.encoder, x, lambda layer, x, key: layer(x, source_keep, key), keys[1])
        return (x if self.encoded is None else self.encoded(x)), seen

    def start(self, source: Int[Array, " S"], source_keep: Bool[Array, " S"], length: int) -> Decoding:
        """The state before the first target symbol, with room for `length` of them."""
        memory, _ = self.encode(source, source_keep)
        layers = jax.vmap(lambda layer: layer.start(memory, length))(self.decoder)
        return Decoding(layers, source_keep, jnp.zeros((), jnp.int32), length)

    def step(self, state: Decoding, token: Int[Array, ""]) -> tuple[Float[Array, " vocabulary"], Decoding]:
        """Scores of the symbol after `token`, and the state with it."""
        i = state.i[None]
        x = self._embed(self.target, token[None], i, None)
        step = lambda layer, x, key, known: layer.extend(x, known, state.keep, i)
        x, layers = climb(self.decoder, x, step, None, state.layers)
        return self._score(x)[0], replace(state, layers=layers, i=state.i + 1)

    def _embed(self, embed: Embed, ids, i, key):
        return dropout(self.position.add(embed(ids, jnp.dtype(self.config.dtype)), i), self.config.dropout, key)

    def _score(self, x):
        x = x if self.decoded is None else self.decoded(x)
        scores = self.target.attend(x) if self.output is None else self.output(x)
        return scores.astype(wide(scores.dtype))
