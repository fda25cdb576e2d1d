"""The configuration that all attention networks share, and checks of its fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import Field, dataclass
from difflib import get_close_matches
from math import lcm
from typing import ClassVar, Literal, Protocol, runtime_checkable

from flax import nnx
from jaxtyping import PRNGKeyArray

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism, Pattern, Softmax
from attnlab.mechanisms.pattern import period
from attnlab.models.shapes import Shape
from attnlab.modules.block import LayerConfig
from attnlab.modules.dense import INITIALISERS
from attnlab.modules.head_projections import check_heads
from attnlab.modules.norm import NORMS
from attnlab.modules.position import Position, Sinusoidal
from attnlab.ops.layer import ACTIVATIONS, GATED_ACTIVATIONS

DTYPES = ("float32", "bfloat16", "float16", "float64")

# Upper limits for layers and widths. A larger value is more likely a typing error than an intended size.
DEEPEST, WIDEST = 1024, 2**20


@runtime_checkable
class ModelConfig(Protocol):
    """The configuration of a model: a frozen dataclass from which a network is created."""

    __dataclass_fields__: ClassVar[dict[str, Field]]

    def create(self, key: PRNGKeyArray, shape: Shape) -> nnx.Module:
        """Create a network with initial parameters for data of a shape.

        Raises:
            ValueError: The model does not support the shape.
        """
        ...


@runtime_checkable
class AttentionConfig(Protocol):
    """The configuration of a model with attention and a position encoding."""

    own_fields: ClassVar[tuple[str, ...]]
    """The roles whose mechanism is set by a field of that name. If it is None, and for other roles, by `mechanism`."""

    @property
    def width(self) -> int:
        """Size of the vectors."""
        ...

    @property
    def heads(self) -> int:
        """Number of query heads."""
        ...

    @property
    def mechanism(self) -> Mechanism | Pattern:
        """The common mechanism, or the pattern of mechanisms."""
        ...

    @property
    def position(self) -> Position:
        """The position encoding."""
        ...

    @property
    def attentions(self) -> Mapping[str, Mechanism | Pattern]:
        """The mechanism of each attention, or the pattern of its layers, by its role."""
        ...


def check_sizes(**sizes: int | None) -> None:
    """Check that sizes are within the supported range.

    Args:
        **sizes: Sizes by the name of their field. A size that is None passes.

    Raises:
        ValueError: A field is below 1, above `DEEPEST` (for `layers`) or above `WIDEST` (for all others).
    """
    for field, value in sizes.items():
        most = DEEPEST if field == "layers" else WIDEST
        if value is not None and not 1 <= value <= most:
            raise ValueError(f"model.{field}={value} must be at least 1, and at most {most}")


def check_dropout(rate: float) -> None:
    """Raise ValueError if a dropout probability is not at least 0 and below 1."""
    if not 0 <= rate < 1:
        raise ValueError(f"model.dropout={rate} must be at least 0 and below 1")


def check_norm_eps(epsilon: float) -> None:
    """Raise ValueError if the ε of a norm is below 1e-37 or not below 1.

    A smaller ε underflows in float32. A larger one dominates the variance.
    """
    if not 1e-37 <= epsilon < 1:
        raise ValueError(f"model.norm_eps={epsilon} must be at least 1e-37 and below 1")


def check_no_embeddings(scale_embeddings: bool) -> None:
    """Raise ValueError if `scale_embeddings` is False, for data that have no embeddings."""
    if not scale_embeddings:
        raise ValueError(
            "model.scale_embeddings=False is not supported: this task's data are not symbols and have no embeddings"
        )


def check_names(**fields: tuple[str | None, Collection[str]]) -> None:
    """Check that fields have one of their known values.

    Args:
        **fields: The value of each field and its known values, by field name.

    Raises:
        ValueError: A field has another value. The message names the field, all known values and the nearest one.
    """
    for field, (value, names) in fields.items():
        if value not in names:
            near = get_close_matches(str(value).lower(), names, n=1)
            hint = f"; nearest: {near[0]!r}" if near else ""
            raise ValueError(f"model.{field}={value!r} must be one of {', '.join(names)}{hint}")


@dataclass(frozen=True)
class StackConfig(metaclass=Documented):
    """Configuration of a stack of attention layers; the base of all Transformer-like models.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    width: int = 64
    """Size of the vectors in the residual stream. `heads` must divide it."""
    heads: int = 4
    """Number of query heads. Each head has `width` / `heads` components."""
    key_heads: int | None = None
    """Number of key and value heads; must divide `heads`. None: as many as `heads`. Fewer share keys and values."""
    layers: int = 2
    """Number of layers."""
    feedforward: int | None = None
    """Width of the hidden layer of the feed-forward blocks. None: 4 · `width`. 0: no feed-forward blocks."""
    mechanism: Mechanism | Pattern = Softmax()
    """The attention mechanism, for example `MECHANISMS["softmax"]`, or a `Pattern` of mechanisms, one per layer."""
    position: Position = Sinusoidal()
    """The position encoding, for example `POSITIONS["rotary"]`."""
    norm: Literal["layer", "rms"] = "layer"
    """Kind of normalisation: layer norm or RMS norm."""
    norm_first: bool = True
    """True: normalise the input of each sublayer (pre-norm). False: normalise its sum with the residual (post-norm)."""
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "glu", "reglu", "geglu", "swiglu"] = "relu"
    """Activation of the feed-forward blocks. Those that end in "glu" add a third linear map, a gate."""
    dropout: float = 0.0
    """Dropout probability, at least 0 and below 1."""
    tied: bool = False
    """True: compute output logits as products with the embedding table instead of with a matrix of their own."""
    biases: bool = True
    """False: linear maps have no bias."""
    initialiser: Literal["gaussian", "xavier", "kaiming"] = "xavier"
    """Initial distribution of the weights of linear maps (`attnlab.modules.dense.INITIALISERS`)."""
    norm_eps: float = 1e-6
    """The ε that the norms add to the variance, at least 1e-37 and below 1."""
    scale_embeddings: bool = True
    """True: multiply embeddings by √width, as Vaswani et al. (2017) do. GPT and BERT do not."""
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"
    """Data type of the computation. Parameters are always float32."""
    remat: bool = False
    """True: recompute each layer in the backward pass, which saves memory for deep stacks and long sequences."""
    missing_values: ClassVar = {"norm_eps": 1e-6}
    own_fields: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self):
        check_heads(self.width, self.heads, self.heads if self.key_heads is None else self.key_heads)
        check_sizes(width=self.width, layers=self.layers)
        if self.feedforward != 0:
            check_sizes(feedforward=self.feedforward)
        check_dropout(self.dropout)
        check_norm_eps(self.norm_eps)
        check_names(
            norm=(self.norm, NORMS),
            activation=(self.activation, (*ACTIVATIONS, *GATED_ACTIVATIONS)),
            initialiser=(self.initialiser, INITIALISERS),
            dtype=(self.dtype, DTYPES),
        )
        check_attentions(self)
        check_patterns(self.layers, mechanism=self.mechanism, **{name: getattr(self, name) for name in self.own_fields})

    @property
    def attentions(self) -> dict[str, Mechanism | Pattern]:
        """The mechanism of each attention, or the pattern of its layers: "encoder", "decoder" or "cross"."""
        return {"decoder": self.mechanism}

    @property
    def sizes(self) -> LayerConfig:
        """The configuration that all layers of the stack share."""
        return LayerConfig(
            width=self.width,
            heads=self.heads,
            feedforward=4 * self.width if self.feedforward is None else self.feedforward,
            activation=self.activation,
            norm=self.norm,
            norm_first=self.norm_first,
            dropout=self.dropout,
            key_heads=self.key_heads,
            biases=self.biases,
            initialiser=self.initialiser,
            norm_eps=self.norm_eps,
        )


def check_attentions(config: AttentionConfig) -> None:
    """Check the mechanisms and the position of a model when the model is configured, before any training.

    Raises:
        ValueError: A mechanism does not support its role or the position encoding.
    """
    for name, mechanism in {"mechanism": config.mechanism, **config.attentions}.items():
        if not isinstance(mechanism, Mechanism | Pattern if isinstance(config, StackConfig) else Mechanism):
            raise ValueError(f"model.{name}={mechanism!r} must be a mechanism, for example MECHANISMS['softmax']")
    if not isinstance(config.position, Position):
        raise ValueError(
            f"model.position={config.position!r} must be a position encoding, for example POSITIONS['rotary']"
        )
    config.position.check(config.width, config.heads)
    each = [(name, mechanism) for name, found in config.attentions.items() for mechanism in period(found)]
    for name, mechanism in each:
        if reason := _unfit(name, mechanism, config):
            # Name the field that set this mechanism: the field of its role, or the common one.
            field = name if name in config.own_fields and getattr(config, name) is not None else "mechanism"
            raise ValueError(f"model.{field}={mechanism} {reason}")
        # Positions do not apply to cross-attention: a memory has positions of its own.
        if name != "cross" and (reason := config.position.refusal(mechanism)):
            raise ValueError(
                f"model.position={config.position} is not supported by the {name}'s {mechanism}: {reason}; "
                "choose another position encoding"
            )


def check_patterns(layers: int, **fields: Mechanism | Pattern | None) -> None:
    """Raise ValueError if the length of a pattern does not divide the number of layers. The message names the field."""
    for field, found in fields.items():
        if found is not None and layers % (length := len(period(found))):
            raise ValueError(f"model.{field}={found} has {length} layers, which must divide model.layers={layers}")


def layer_mechanisms(layers: int, *attentions: Mechanism | Pattern) -> list[tuple[Mechanism, ...]]:
    """Return the mechanisms of the attentions of each layer in one period of all their patterns.

    Raises:
        ValueError: The length of the period does not divide the number of layers.
    """
    periods = [period(found) for found in attentions]
    length = lcm(*map(len, periods))
    if layers % length:
        both = " and ".join(map(str, attentions))
        raise ValueError(f"{both} together repeat after {length} layers, which must divide model.layers={layers}")
    return [tuple(each[n % len(each)] for each in periods) for n in range(length)]


def _unfit(name: str, mechanism: Mechanism, config: AttentionConfig) -> str | None:
    """Return why a mechanism does not support the role `name`, with an alternative, or None if it does."""
    if name == "decoder" and not mechanism.traits.decodes:
        return "has no causal form and cannot decode; use for example softmax or linear"
    if name != "decoder" and not mechanism.traits.any_mask:
        causal_only = lambda found: not all(each.traits.any_mask for each in period(found))
        blind = [part for part, found in config.attentions.items() if part != "decoder" and causal_only(found)]
        fields = dict.fromkeys(f"model.{part if part in config.own_fields else 'mechanism'}=softmax" for part in blind)
        return (
            f"supports only causal attention, but {name} attention sees all tokens; use for example {' '.join(fields)}"
        )
    if name == "cross" and mechanism.traits.self_only:
        return "attends from a sequence to itself only, but cross attention reads a memory; use model.cross=softmax"
    if name == "cross" and not mechanism.traits.row_independent:
        return "mixes queries, so that outputs would depend on later targets; use for example model.cross=softmax"
    return None
