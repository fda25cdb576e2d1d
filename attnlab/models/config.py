"""What the configurations of networks of attention layers have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, Literal

from attnlab.mechanisms import Mechanism, Softmax
from attnlab.modules.attention import check_heads
from attnlab.modules.block import LayerConfig
from attnlab.modules.dense import INITIALISERS
from attnlab.modules.norm import NORMS
from attnlab.modules.position import Position, Sinusoidal
from attnlab.ops.layer import ACTIVATIONS

DTYPES = ("float32", "bfloat16", "float16", "float64")

# Beyond these a slip of the hand is likelier than a network: layers are traced one by one, widths multiplied.
DEEPEST, WIDEST = 1024, 2**20


def check_sizes(config: Any, *fields: str) -> None:
    """Raise ValueError, naming the field, where one that is given is below 1 or beyond what a network can be."""
    for field in fields:
        most = DEEPEST if field == "layers" else WIDEST
        if (value := getattr(config, field)) is not None and not 1 <= value <= most:
            raise ValueError(f"model.{field}={value} must be at least 1, and at most {most}")


def check_dropout(config: Any) -> None:
    """Raise ValueError, naming the field, where the share that is dropped is none."""
    if not 0 <= config.dropout < 1:
        raise ValueError(f"model.dropout={config.dropout} must be at least 0 and below 1")


def check_norm_eps(config: Any) -> None:
    """Raise ValueError, naming the field, for an ε that is lost in float32, or that a variance would be lost beside."""
    if not 1e-37 <= config.norm_eps < 1:
        raise ValueError(f"model.norm_eps={config.norm_eps} must be at least 1e-37 and below 1")


def check_no_embeddings(config: Any) -> None:
    """Raise ValueError where embeddings are not to be scaled, of a model that has none."""
    if not config.scale_embeddings:
        raise ValueError("model.scale_embeddings=False: these data are no symbols, and have no embeddings")


def check_names(config: Any, **known: Iterable[str]) -> None:
    """Raise ValueError where a field is none of the known names of it: the field, all of them, and the nearest."""
    for field, names in known.items():
        if (value := getattr(config, field)) not in names:
            near = get_close_matches(str(value).lower(), names, n=1)
            hint = f"; nearest: {near[0]!r}" if near else ""
            raise ValueError(f"model.{field}={value!r} must be one of {', '.join(names)}{hint}")


def check_shape(config: Any, shape: Any, *needed: str) -> None:
    """Raise ValueError where the shape of a task's data lacks what the model is built for."""
    if not all(hasattr(shape, name) for name in needed):
        raise ValueError(
            f"model={type(config).__name__} is built for {', '.join(needed)}, and this task's data have "
            f"{', '.join(vars(shape))}: choose another model"
        )


@dataclass(frozen=True)
class StackConfig:
    """`layers` blocks of `width` with `heads`.

    `key_heads` fewer than heads share keys and values among them. `feedforward` None is four times the width, and 0 is
    attention alone. `norm_first` is pre-norm; `norm_eps` is the ε of norms. `tied` scores outputs against the
    embedding. `scale_embeddings` reads embeddings times √width, as Vaswani et al. (2017) do; GPT and BERT do not.
    `biases` False leaves linear maps without. `dtype` is what it computes in; parameters are float32. `remat` computes
    each layer again in the backward pass: for deep stacks and long sequences, which would not fit otherwise.

    Raises ValueError naming the field for what cannot work.
    """

    width: int = 64
    heads: int = 4
    key_heads: int | None = None
    layers: int = 2
    feedforward: int | None = None
    mechanism: Mechanism = Softmax()
    position: Position = Sinusoidal()
    norm: Literal["layer", "rms"] = "layer"
    norm_first: bool = True
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"] = "relu"
    dropout: float = 0.0
    tied: bool = False
    biases: bool = True
    initialiser: Literal["gaussian", "xavier", "kaiming"] = "xavier"
    norm_eps: float = 1e-6
    scale_embeddings: bool = True
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = "float32"
    remat: bool = False
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
        """The mechanism of each attention, by the name of what it serves."""
        return {"decoder": self.mechanism}

    @property
    def sizes(self) -> LayerConfig:
        """What its layers have in common."""
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
    """Refuse what a position or a mechanism of a model cannot do: now, not in training."""
    for name, mechanism in {"mechanism": config.mechanism, **config.attentions}.items():
        if not isinstance(mechanism, Mechanism):
            raise ValueError(f"model.{name}={mechanism!r} must be a mechanism, such as those of attnlab.MECHANISMS")
    if not isinstance(config.position, Position):
        raise ValueError(f"model.position={config.position!r} must be a position, such as those of attnlab.POSITIONS")
    config.position.check(config.width, config.heads)
    for name, mechanism in config.attentions.items():
        if reason := _unfit(name, mechanism, config):
            # One of its own, or the one that serves all.
            field = name if getattr(config, name, None) is not None else "mechanism"
            raise ValueError(f"model.{field}={mechanism} {reason}")
        # A memory is not on the line of positions that the queries stand on.
        if name != "cross" and (reason := config.position.refusal(mechanism)):
            raise ValueError(
                f"model.position={config.position} cannot be honoured by the {name}'s {mechanism}: {reason}; "
                "choose another"
            )


def _unfit(name: str, mechanism: Mechanism, config: Any) -> str | None:
    """Why a mechanism cannot serve as the attention of that name, and what would do."""
    if name == "decoder" and not mechanism.stateful:
        return "has no causal form: it cannot decode; softmax and linear can"
    if name != "decoder" and not mechanism.attends:
        blind = [part for part, each in config.attentions.items() if part != "decoder" and not each.attends]
        fields = dict.fromkeys(f"model.{part if hasattr(config, part) else 'mechanism'}=softmax" for part in blind)
        return f"reads the past only: {name} attention must see all; such as {' '.join(fields)} can"
    if name == "cross" and not mechanism.rowwise:
        return "mixes the queries, so that later targets would show in earlier ones; use such as model.cross=softmax"
    return None
