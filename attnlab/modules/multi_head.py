"""The configuration of an attention layer: projections, gate, norms, head widths."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

from attnlab.mechanisms.base import Mechanism
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.modules.attention_layer import AttentionLayer, check_heads, check_whole

GATES = ("none", "head", "channel")
GATE_ACTIVATIONS = ("sigmoid", "silu")
HEAD_NORMS = ("none", "rms", "group", "all")
QK_NORMS = ("none", "head", "all")
CONVOLVED = ("qkv", "qk", "v")


@dataclass(frozen=True)
class MultiHead(AttentionLayer):
    """Multi-head attention (Vaswani et al. 2017), and what published layers add to it.

    For input x [T D], each head has q, k and v. The order is: linear maps, value residual, short convolution, QK-norm,
    rotary positions, mechanism, exclusion or addition of the own value, norm of the heads, gate, output map.

    Raises:
        ValueError: A field, or a combination of fields, is invalid. The message names the field.
    """

    gate: Literal["none", "head", "channel"] = "none"
    """Output gate, y = (heads ⊙ activation(x W_g)) W_o: one factor per head, or one per channel.

    Softmax layers use it with a sigmoid (Qiu et al. 2025); retention and gated linear layers with SiLU and a norm.
    """
    gate_activation: Literal["sigmoid", "silu"] = "sigmoid"
    """Activation of the output gate."""
    gate_rank: int | None = None
    """Rank of W_g, as the product of two matrices (Kimi Linear). None: full rank."""
    head_norm: Literal["none", "rms", "group", "all"] = "none"
    """Norm of the heads' outputs.

    "rms": RMS norm of each head, with a learned scale that the heads share (Gated DeltaNet, GLA). "group": group norm
    with one group per head, with a learned scale and shift per channel. "all": RMS norm of all heads at once (Mamba-2).
    """
    norm_after_gate: bool = False
    """Whether the norm of the heads follows the gate instead of preceding it (Mamba-2)."""
    qk_norm: Literal["none", "head", "all"] = "none"
    """RMS norm of queries and keys with a learned scale, before rotary positions.

    "head": of each head, with a scale that the heads share (Qwen3). "all": of all heads together (OLMo 2).
    """
    qkv_bias: bool | None = None
    """Whether the maps to queries, keys and values have a bias. None: as `model.biases`. True: as in Qwen2."""
    head_width: int | None = None
    """Width K of a query or key. None: `key_expansion` times the model's width divided by the number of heads."""
    value_width: int | None = None
    """Width V of a value. None: `value_expansion` times `head_width`, or times the model's width by head."""
    key_expansion: float = 1.0
    """Width of a query or key relative to the model's width divided by the number of heads (GLA: ½)."""
    value_expansion: float = 1.0
    """Width of a value, likewise (RetNet and Gated DeltaNet: 2)."""
    key_heads: int | None = None
    """Number of key and value heads of this layer; must divide the number of heads. None: `model.key_heads`."""
    value_heads: int | None = None
    """Number of value heads, a multiple of the number of heads, each with its own state.

    Several value heads share a query and a key (Qwen3-Next: 16 and 32). None: as many as key heads.
    """
    convolution: int = 0
    """Number of tokens of a short causal convolution with SiLU, per channel, after the linear maps. 0: none."""
    convolved: Literal["qkv", "qk", "v"] = "qkv"
    """What is convolved."""
    convolution_bias: bool = False
    """Whether the convolution has a bias (Mamba)."""
    extra_rank: int | None = None
    """Rank of the maps to the mechanism's extra inputs per channel, such as gates (GLA: 16). None: full rank."""
    extra_bias: bool | None = None
    """Whether the maps to the mechanism's extra inputs have a bias. None: as `model.biases`."""
    skip: bool = False
    """Whether each token's own value is added to the output, times a learned number per head that starts at 1 (Mamba).
    """
    value_residual: bool = False
    """Whether values are λ₁ v + λ₂ v₁ with the values v₁ of the first layer (Zhou et al. 2024).

    λ₁ and λ₂ are learned numbers per layer, and start at ½. The first layer has them too, where v = v₁. v₁ is taken
    before any convolution.
    """
    exclude_self: bool = False
    """Whether each token's own value is projected out of the output: y − (y·v̂) v̂ with v̂ = v/‖v‖ (XSA, 2026)."""
    dropout: float = 0.0
    """Dropout probability of attention weights. It computes the weights of all pairs while training."""

    def __post_init__(self):
        for name, known in {
            "gate": GATES,
            "gate_activation": GATE_ACTIVATIONS,
            "head_norm": HEAD_NORMS,
            "qk_norm": QK_NORMS,
            "convolved": CONVOLVED,
        }.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(known)}")
        names = ("gate_rank", "extra_rank", "head_width", "value_width", "key_heads", "value_heads")
        check_whole(**{name: getattr(self, name) for name in names})
        needs = {
            "gate_rank": (self.gate_rank is not None, "gate", self.gate != "none"),
            "norm_after_gate": (self.norm_after_gate, "gate", self.gate != "none"),
            "convolution_bias": (self.convolution_bias, "convolution", bool(self.convolution)),
        }
        for name, (given, other, there) in needs.items():
            if given and not there:
                raise ValueError(f"{name}={getattr(self, name)} needs a {other}; set {other}")
        for name, other in {"key_expansion": "head_width", "value_expansion": "value_width"}.items():
            if getattr(self, name) != 1 and getattr(self, other) is not None:
                raise ValueError(f"{name}={getattr(self, name)} has no effect with {other}={getattr(self, other)}")
        for name in ("key_expansion", "value_expansion"):
            if not 0 < getattr(self, name) <= 1024:
                raise ValueError(f"{name}={getattr(self, name)} must be above 0, and at most 1024")
        if type(self.convolution) is not int or not 0 <= self.convolution <= 1024:
            raise ValueError(f"convolution={self.convolution} must be a number of tokens in 0 … 1024")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout={self.dropout} must be at least 0 and below 1")

    @property
    def line(self) -> str:
        """A one-line description for a list: the fields that differ from their defaults."""
        held = [(each, getattr(self, each.name)) for each in fields(self)]
        changed = [f"{each.name}={value}" for each, value in held if value != each.default]
        return "Multi-head attention" + (f" with {', '.join(changed)}" if changed else "") + "."

    def widths(self, width: int, heads: int) -> tuple[int, int]:
        """Return the widths K of a key and V of a value, for a model of a width and a number of heads."""
        size = width // heads if self.head_width is None else self.head_width
        key = round(size * self.key_expansion) if self.head_width is None else self.head_width
        return key, round(size * self.value_expansion) if self.value_width is None else self.value_width

    def check(self, width: int, heads: int, key_heads: int) -> None:
        """Check the numbers of heads and the widths.

        Raises:
            ValueError: A number is below 1, or one does not divide another that it must divide.
        """
        check_heads(width, heads, self.key_heads or key_heads, self.head_width is None)
        for name, own in {"key_expansion": self.head_width, "value_expansion": self.value_width}.items():
            size, factor = self.head_width or width // heads, getattr(self, name)
            if own is None and size * factor != round(size * factor):
                raise ValueError(f"{name}={factor} times a head's width {size} must be a whole number")
        if self.value_heads is None:
            return
        if self.key_heads is not None:
            raise ValueError(f"key_heads={self.key_heads} cannot be set together with value_heads={self.value_heads}")
        if self.value_heads % heads:
            raise ValueError(f"value_heads={self.value_heads} must be a multiple of model.heads={heads}")
        if key_heads != heads:
            raise ValueError(
                f"value_heads={self.value_heads} needs as many key heads as query heads, but model.heads={heads} and "
                f"model.key_heads={key_heads}"
            )

    def refusal(self, mechanism: Mechanism, role: str) -> str | None:
        """Return why a mechanism does not support this layer in a role, or None if it does."""
        if self.dropout and not isinstance(mechanism, Pairwise):
            return f"dropout={self.dropout} needs attention weights, which {mechanism} does not compute"
        if self.convolution and role not in ("decoder", "cross"):
            return f"convolution={self.convolution} is causal, but {role} attention sees all tokens"
        return None

    @property
    def for_context(self) -> MultiHead:
        """This layer for cross-attention to another sequence: without what applies to self-attention only.

        There is no convolution, no value residual, and the own value is neither excluded nor added.
        """
        return replace(self, convolution=0, value_residual=False, exclude_self=False, skip=False)

    def value_count(self, heads: int, key_heads: int) -> int:
        """Return the number of values per token."""
        return self.value_heads or self.key_heads or key_heads

    @property
    def mechanism_heads(self) -> int | None:
        """The number of value heads."""
        return self.value_heads

    @property
    def reads_first_values(self) -> bool:
        """Whether there is a value residual."""
        return self.value_residual
