"""The configuration that all attention networks share, and checks of its fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, Literal

from attnlab.documented import Documented
from attnlab.mechanisms import Mechanism, Softmax
from attnlab.modules.attention import check_heads
from attnlab.modules.block import LayerConfig
from attnlab.modules.dense import INITIALISERS
from attnlab.modules.norm import NORMS
from attnlab.modules.position import Position, Sinusoidal
from attnlab.ops.layer import ACTIVATIONS

DTYPES = ("float32", "bfloat16", "float16", "float64")

# Upper limits for layers and widths. A larger value is more likely a typing error than an intended size.
DEEPEST, WIDEST = 1024, 2**20


def check_sizes(config: Any, *fields: str) -> None:
    """Check that sizes are within the supported range.

    Args:
        config: The configuration to check.
        *fields: Names of the fields to check. A field that is None passes.

    Raises:
        ValueError: A field is below 1, above `DEEPEST` (for `layers`) or above `WIDEST` (for all others).
    """
    for field in fields:
        most = DEEPEST if field == "layers" else WIDEST
        if (value := getattr(config, field)) is not None and not 1 <= value <= most:
            raise ValueError(f"model.{field}={value} must be at least 1, and at most {most}")


def check_dropout(config: Any) -> None:
    """Raise ValueError if `config.dropout` is not at least 0 and below 1."""
    if not 0 <= config.dropout < 1:
        raise ValueError(f"model.dropout={config.dropout} must be at least 0 and below 1")


def check_norm_eps(config: Any) -> None:
    """Raise ValueError if `config.norm_eps` is below 1e-37 or not below 1.

    A smaller ε underflows in float32. A larger one dominates the variance.
    """
    if not 1e-37 <= config.norm_eps < 1:
        raise ValueError(f"model.norm_eps={config.norm_eps} must be at least 1e-37 and below 1")


def check_no_embeddings(config: Any) -> None:
    """Raise ValueError if `config.scale_embeddings` is False, for data that have no embeddings."""
    if not config.scale_embeddings:
        raise ValueError(
            "model.scale_embeddings=False is not supported: this task's data are not symbols and have no embeddings"
        )


def check_names(config: Any, **known: Iterable[str]) -> None:
    """Check that fields have one of their known values.

    Args:
        config: The configuration to check.
        **known: The known values of each field, by field name.

    Raises:
        ValueError: A field has another value. The message names the field, all known values and the nearest one.
    """
    for field, names in known.items():
        if (value := getattr(config, field)) not in names:
            near = get_close_matches(str(value).lower(), names, n=1)
            hint = f"; nearest: {near[0]!r}" if near else ""
            raise ValueError(f"model.{field}={value!r} must be one of {', '.join(names)}{hint}")


def check_shape(config: Any, shape: Any, *needed: str) -> None:
    """Raise ValueError if `shape`, the shape of a task's data, lacks one of the attributes `needed` by the model."""
    if not all(hasattr(shape, name) for name in needed):
        raise ValueError(
            f"model={type(config).__name__} needs data with {', '.join(needed)}, but this task's data have "
            f"{', '.join(vars(shape))}; choose another model"
        )


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
    mechanism: Mechanism = Softmax()
    """The attention mechanism, for example `MECHANISMS["softmax"]`."""
    position: Position = Sinusoidal()
    """The position encoding, for example `POSITIONS["rotary"]`."""
    norm: Literal["layer", "rms"] = "layer"
    """Kind of normalisation: layer norm or RMS norm."""
    norm_first: bool = True
    """True: normalise the input of each sublayer (pre-norm). False: normalise its sum with the residual (post-norm)."""
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"] = "relu"
    """Activation of the feed-forward blocks. "swiglu" adds a third linear map, which gates the hidden layer."""
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

    def __post_init__(self):
        check_heads(self.width, self.heads, self.heads if self.key_heads is None else self.key_heads)
        check_sizes(self, "width", "layers")
        if self.feedforward != 0:
            check_sizes(self, "feedforward")
        check_dropout(self)
        check_norm_eps(self)
        check_names(self, norm=NORMS, activation=(*ACTIVATIONS, "swiglu"), initialiser=INITIALISERS, dtype=DTYPES)
        check_attentions(self)

    @property
    def attentions(self) -> dict[str, Mechanism]:
        """The mechanism of each attention, by its role: "encoder", "decoder" or "cross"."""
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


def check_attentions(config: Any) -> None:
    """Check the mechanisms and the position of a model when the model is configured, before any training.

    Raises:
        ValueError: A mechanism does not support its role or the position encoding.
    """
    for name, mechanism in {"mechanism": config.mechanism, **config.attentions}.items():
        if not isinstance(mechanism, Mechanism):
            raise ValueError(f"model.{name}={mechanism!r} must be a mechanism, for example MECHANISMS['softmax']")
    if not isinstance(config.position, Position):
        raise ValueError(
            f"model.position={config.position!r} must be a position encoding, for example POSITIONS['rotary']"
        )
    config.position.check(config.width, config.heads)
    for name, mechanism in config.attentions.items():
        if reason := _unfit(name, mechanism, config):
            # Name the field that set this mechanism: the field of its role, or the common one.
            field = name if getattr(config, name, None) is not None else "mechanism"
            raise ValueError(f"model.{field}={mechanism} {reason}")
        # Positions do not apply to cross-attention: a memory has positions of its own.
        if name != "cross" and (reason := config.position.refusal(mechanism)):
            raise ValueError(
                f"model.position={config.position} is not supported by the {name}'s {mechanism}: {reason}; "
                "choose another position encoding"
            )


def _unfit(name: str, mechanism: Mechanism, config: Any) -> str | None:
    """Return why a mechanism does not support the role `name`, with an alternative, or None if it does."""
    if name == "decoder" and not mechanism.traits.decodes:
        return "has no causal form and cannot decode; use for example softmax or linear"
    if name != "decoder" and not mechanism.traits.any_mask:
        blind = [part for part, each in config.attentions.items() if part != "decoder" and not each.traits.any_mask]
        fields = dict.fromkeys(f"model.{part if hasattr(config, part) else 'mechanism'}=softmax" for part in blind)
        return (
            f"supports only causal attention, but {name} attention sees all tokens; use for example {' '.join(fields)}"
        )
    if name == "cross" and not mechanism.traits.row_independent:
        return "mixes queries, so that outputs would depend on later targets; use for example model.cross=softmax"
    return None
