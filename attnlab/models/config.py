"""The configuration that all attention networks share, and checks of its fields."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism, Softmax
from attnlab.models.checks import DTYPES, check_dropout, check_names, check_norm_eps, check_sizes
from attnlab.models.interfaces import AttentionConfig
from attnlab.modules.attention_layer import AttentionLayer
from attnlab.modules.dense import INITIALISERS
from attnlab.modules.latent import Latent
from attnlab.modules.layer_config import LayerConfig
from attnlab.modules.multi_head import MultiHead
from attnlab.modules.norm import NORMS
from attnlab.modules.position import Position, Sinusoidal
from attnlab.ops.layer import ACTIVATIONS, GATED_ACTIVATIONS
from attnlab.pattern import Pattern, by_layer, period


@dataclass(frozen=True)
class StackConfig(metaclass=Documented):
    """Configuration of a stack of attention layers; the base of all Transformer-like models.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    width: int = 64
    """Size of the vectors in the residual stream. `heads` must divide it, unless heads have a width of their own."""
    heads: int = 4
    """Number of query heads. Each head has `width` / `heads` components by default."""
    key_heads: int | None = None
    """Number of key and value heads; must divide `heads`. None: as many as `heads`. Fewer share keys and values."""
    layers: int = 2
    """Number of layers."""
    feedforward: int | None = None
    """Width of the hidden layer of the feed-forward blocks. None: 4 · `width`. 0: no feed-forward blocks."""
    mechanism: Mechanism | Pattern = Softmax()
    """The attention mechanism, for example `MECHANISMS["softmax"]`, or a `Pattern` of mechanisms, one per layer."""
    attention: AttentionLayer | Pattern = MultiHead()
    """The attention layer that contains the mechanism: projections, gate, norms, head widths.

    One for all layers, or a `Pattern`, one per layer.
    """
    position: Position | Pattern = Sinusoidal()
    """The position encoding, for example `POSITIONS["rotary"]`, or a `Pattern` of encodings, one per layer."""
    norm: Literal["layer", "rms"] = "layer"
    """Kind of normalisation: layer norm or RMS norm."""
    norm_first: bool = True
    """True: normalise the input of each sublayer (pre-norm). False: normalise its sum with the residual (post-norm)."""
    norm_output: bool = False
    """True: normalise the output of each sublayer before it is added, instead of the sum.

    With `norm_first` both input and output are normalised ("sandwich", Gemma 2), without it only the output (OLMo 2).
    """
    parallel: bool = False
    """True: attention and feed-forward block read the same normalised input, and are added together (GPT-J, PaLM)."""
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "glu", "reglu", "geglu", "swiglu"] = "relu"
    """Activation of the feed-forward blocks. Those that end in "glu" add a third linear map, a gate."""
    dropout: float = 0.0
    """Dropout probability, at least 0 and below 1.

    It applies to embeddings, to the hidden layer of feed-forward blocks and to what each sublayer adds. That of
    attention weights is a field of `attention`.
    """
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
    """Values of fields that are missing in configurations of older versions."""
    mechanism_fields: ClassVar[tuple[str, ...]] = ()
    """The roles whose mechanism is set by a field of that name. If it is None, and for other roles, by `mechanism`."""
    feedforward_ratio: ClassVar[float] = 4
    """Width of the hidden layer of the feed-forward blocks by default, relative to `width`."""

    def __post_init__(self):
        for layer in period(self.attention):
            if not isinstance(layer, AttentionLayer):
                raise ValueError(f"model.attention={layer!r} must be an attention layer, for example MultiHead()")
            try:
                layer.check(self.width, self.heads, self.heads if self.key_heads is None else self.key_heads)
            except ValueError as refusal:
                line = str(refusal)
                raise ValueError(line if line.startswith("model.") else f"model.attention.{line}") from None
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
        own = {name: getattr(self, name) for name in self.mechanism_fields}
        patterns = {"mechanism": self.mechanism, "attention": self.attention, "position": self.position}
        check_patterns(self.layers, **patterns, **own)

    @property
    def attentions(self) -> dict[str, Mechanism | Pattern]:
        """The mechanism of each attention, or the pattern of its layers: "encoder", "decoder" or "cross"."""
        return {"decoder": self.mechanism}

    @property
    def feedforward_width(self) -> int:
        """The width of the hidden layer of the feed-forward blocks: `feedforward`, or its default."""
        if self.feedforward is not None:
            return self.feedforward
        size = self.feedforward_ratio * self.width
        return round(size) if size == round(size) else -(-round(size) // 8) * 8

    @property
    def sizes(self) -> LayerConfig:
        """The configuration that all layers of the stack share."""
        return LayerConfig(
            width=self.width,
            heads=self.heads,
            feedforward=self.feedforward_width,
            activation=self.activation,
            norm=self.norm,
            norm_first=self.norm_first,
            dropout=self.dropout,
            key_heads=self.key_heads,
            biases=self.biases,
            initialiser=self.initialiser,
            norm_eps=self.norm_eps,
            norm_output=self.norm_output,
            parallel=self.parallel,
        )


def check_attentions(config: AttentionConfig) -> None:
    """Check the mechanisms and the positions of a model when the model is configured, before any training.

    Raises:
        ValueError: A mechanism does not support its role, the position encoding or the attention layer.
    """
    stack = config if isinstance(config, StackConfig) else None
    for name, mechanism in {"mechanism": config.mechanism, **config.attentions}.items():
        kinds = period(mechanism) if stack else (mechanism,)
        if not all(isinstance(each, Mechanism) for each in kinds):
            raise ValueError(f"model.{name}={mechanism!r} must be a mechanism, for example MECHANISMS['softmax']")
    for position in period(config.position) if stack else (config.position,):
        if not isinstance(position, Position):
            raise ValueError(
                f"model.position={position!r} must be a position encoding, for example POSITIONS['rotary']"
            )
        if isinstance(config.position, Pattern) and not (
            position.rotary or position.has_bias or position == Position()
        ):
            raise ValueError(
                f"model.position={config.position}: {position} adds to the input, which layers share; use encodings "
                "that rotate or add to scores, such as rotary, alibi or none"
            )
    if stack:
        _check_layers(stack)
    else:
        assert isinstance(config.position, Position)  # checked above
        config.position.check(config.width, config.heads)
    for role, found in config.attentions.items():
        layer = stack.attention if stack else MultiHead()
        each = by_layer(found, config.position, layer)
        patterned = any(isinstance(value, Pattern) for value in (found, config.position, layer))
        for n, (mechanism, position, layer) in enumerate(each):
            _check_layer(config, role, mechanism, position, layer, f" in layer {n + 1}" if patterned else "")


def _check_layers(config: StackConfig) -> None:
    """Check that attention layers, positions and the order of blocks fit each other."""
    if config.parallel and config.feedforward == 0:
        raise ValueError("model.parallel=True needs feed-forward blocks, but model.feedforward=0")
    if config.parallel and "cross" in config.attentions:
        raise ValueError(
            "model.parallel=True is not supported with cross-attention, which reads what attention returns"
        )
    layers = period(config.attention)
    widths = lambda layer: layer.widths(config.width, config.heads)
    values = lambda layer: layer.value_count(config.heads, config.key_heads or config.heads) * widths(layer)[1]
    if any(layer.reads_first_values for layer in layers) and len({values(layer) for layer in layers}) > 1:
        sizes = ", ".join(str(values(layer)) for layer in layers)
        raise ValueError(f"model.attention: value_residual=True needs values of one size in all layers, got {sizes}")
    for position, layer in by_layer(config.position, config.attention):
        heads, (key, value) = layer.mechanism_heads or config.heads, widths(layer)
        rotated = layer.rotated(config.width, config.heads)
        if (position.rotary or position.has_bias) and rotated != config.width // config.heads:
            try:
                position.check(heads * rotated, heads)
            except ValueError:
                raise ValueError(
                    f"model.position={position} cannot rotate {rotated} components of a head, as model.attention asks"
                ) from None
        else:
            position.check(config.width, config.heads)
        if position.rotary and not layer.rotated(config.width, config.heads):
            raise ValueError(f"model.position={position} rotates nothing: model.attention.rotary_width is 0")
        if position.has_values and (key != value or isinstance(layer, Latent)):
            raise ValueError(f"model.position={position} needs multi-head attention with values as wide as keys")
    kinds = {(layer.mechanism_heads, widths(layer)) for layer in layers}
    if len(kinds) > 1 and any(position.has_bias for position in period(config.position)):
        raise ValueError(f"model.position={config.position} needs heads of one number and width in all layers")


def _check_layer(
    config: AttentionConfig, role: str, mechanism: Mechanism, position: Position, layer: AttentionLayer, where: str
) -> None:
    """Check the mechanism, the position and the surroundings of one attention of one layer."""
    # Name the field that set this mechanism: the field of its role, or the common one.
    field = role if role in config.mechanism_fields and getattr(config, role) is not None else "mechanism"
    if reason := _unfit(role, mechanism, config):
        raise ValueError(f"model.{field}={mechanism}{where} {reason}")
    # Positions do not apply to cross-attention: a context has positions of its own.
    if role != "cross" and (reason := position.refusal(mechanism)):
        raise ValueError(
            f"model.position={position} is not supported by the {role}'s {mechanism}{where}: {reason}; "
            "choose another position encoding"
        )
    if reason := layer.refusal(mechanism, role):
        raise ValueError(f"model.attention{where}: {reason}")


def check_patterns(layers: int, **fields: object) -> None:
    """Raise ValueError if the length of a pattern does not divide the number of layers. The message names the field."""
    for field, found in fields.items():
        if found is not None and layers % (length := len(period(found))):
            raise ValueError(f"model.{field}={found} has {length} layers, which must divide model.layers={layers}")


def layers_of_period(
    config: StackConfig, *attentions: Mechanism | Pattern
) -> list[tuple[LayerConfig, tuple[Mechanism, ...]]]:
    """Return the configuration and the mechanisms of each layer in one common period of all patterns.

    Args:
        config: The configuration of the model.
        *attentions: The mechanism of each attention of a layer, or its pattern.

    Raises:
        ValueError: The length of the period does not divide the number of layers.
    """
    # A pattern of positions has no part in what a layer is, but layers of one kind share a position.
    found = by_layer(config.attention, config.position, *attentions)
    if config.layers % len(found):
        several = (config.attention, config.position, *attentions)
        patterns = " and ".join(str(value) for value in several if isinstance(value, Pattern))
        raise ValueError(
            f"{patterns} together repeat after {len(found)} layers, which must divide model.layers={config.layers}"
        )
    return [(replace(config.sizes, layer=layer), tuple(mechanisms)) for layer, _, *mechanisms in found]


def _unfit(name: str, mechanism: Mechanism, config: AttentionConfig) -> str | None:
    """Return why a mechanism does not support the role `name`, with an alternative, or None if it does."""
    if name == "decoder" and not mechanism.traits.decodes:
        return "has no causal form and cannot decode; use for example softmax or linear"
    if name != "decoder" and not mechanism.traits.non_causal:
        causal_only = lambda found: not all(each.traits.non_causal for each in period(found))
        blind = [part for part, found in config.attentions.items() if part != "decoder" and causal_only(found)]
        fields = dict.fromkeys(
            f"model.{part if part in config.mechanism_fields else 'mechanism'}=softmax" for part in blind
        )
        kind = name.removesuffix("_attention")
        return (
            f"supports only causal attention, but {kind} attention sees all tokens; use for example {' '.join(fields)}"
        )
    if name == "cross" and mechanism.traits.self_only:
        return "attends from a sequence to itself only, but cross attention reads another; use model.cross=softmax"
    if name == "cross" and not mechanism.traits.row_independent:
        return "mixes queries, so that outputs would depend on later targets; use for example model.cross=softmax"
    return None
