"""Language models whose layers are built as papers publish them, at small sizes.

Each is a `Language` with other defaults. Where a layer differs from the paper, its docstring says so. The sizes are far
below the published ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from attnlab.mechanisms import MECHANISMS, Mechanism
from attnlab.models.language import Language
from attnlab.modules.attention_layer import AttentionLayer
from attnlab.modules.latent import Latent
from attnlab.modules.multi_head import MultiHead
from attnlab.modules.position import Position, Rotary
from attnlab.pattern import Pattern

LLAMA_ROTARY = Rotary(pairs="halves")
"""Rotary positions with the pairs of Llama."""


@dataclass(frozen=True)
class TransformerPlusPlus(Language):
    """Transformer++: softmax with RMS norm, SwiGLU, rotary positions and grouped queries (as in Llama 3, Meta 2024).

    As in the papers on linear attention that compare with it (Gu and Dao 2023), there is no bias. Rotary positions have
    the base 10,000, as in the first Llama (Llama 3: 500,000). The output map is the embedding table; in Llama 3 it is
    so for the small models only.
    """

    key_heads: int | None = 2
    mechanism: Mechanism | Pattern = MECHANISMS["softmax"]
    position: Position | Pattern = LLAMA_ROTARY
    norm: Literal["layer", "rms"] = "rms"
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "glu", "reglu", "geglu", "swiglu"] = "swiglu"
    biases: bool = False
    tied: bool = True
    scale_embeddings: bool = False
    initialiser: Literal["gaussian", "xavier", "kaiming"] = "gaussian"
    feedforward: int | None = None
    """Width of the hidden layer of the feed-forward blocks. None: 8/3 · `width`, rounded up to a multiple of 8."""
    feedforward_ratio: ClassVar[float] = 8 / 3


@dataclass(frozen=True)
class GatedSoftmax(TransformerPlusPlus):
    """Transformer++ with a sigmoid gate per channel on the output of every head, and QK-norm (Qiu et al. 2025)."""

    attention: AttentionLayer | Pattern = MultiHead(gate="channel", qk_norm="head")


@dataclass(frozen=True)
class LinearLanguage(TransformerPlusPlus):
    """The base of language models with linear attention: as Transformer++, without positions and shared keys."""

    key_heads: int | None = None
    position: Position | Pattern = Position()


@dataclass(frozen=True)
class RetNet(LinearLanguage):
    """RetNet: retention with rotary positions, group norm, a SiLU gate, and values twice as wide (Sun et al. 2023).

    The feed-forward blocks are a GELU layer of twice the width, as in the paper. Layer norm and scaled embeddings are
    replaced by RMS norm and plain embeddings, as in the authors' later code (torchscale). Other differences from that
    code: its angles are 10000^(−n/(N−1)) for the pair n of N, so that the slowest is 0.0001, where `Rotary` has
    10000^(−n/N). It normalises a head by its root mean square, without a scale, and its feed-forward blocks are gated.
    """

    mechanism: Mechanism | Pattern = MECHANISMS["retention"]
    attention: AttentionLayer | Pattern = MultiHead(
        gate="channel", gate_activation="silu", head_norm="group", value_expansion=2.0
    )
    position: Position | Pattern = Rotary()
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "glu", "reglu", "geglu", "swiglu"] = "gelu"
    feedforward_ratio: ClassVar[float] = 2


@dataclass(frozen=True)
class GatedLinearTransformer(LinearLanguage):
    """GLA: gated linear attention with gates of rank 16, RMS norm of heads, a SiLU gate and narrow keys (Yang 2023).

    Keys have half the width of values. As in the authors' code.
    """

    mechanism: Mechanism | Pattern = MECHANISMS["gated-linear"]
    attention: AttentionLayer | Pattern = MultiHead(
        gate="channel", gate_activation="silu", head_norm="rms", key_expansion=0.5, extra_rank=16, extra_bias=True
    )


@dataclass(frozen=True)
class DeltaNet(LinearLanguage):
    """DeltaNet: the delta rule with short convolutions of q, k and v, and RMS norm of heads (Yang et al. 2024).

    As in the authors' code.
    """

    mechanism: Mechanism | Pattern = MECHANISMS["delta"]
    attention: AttentionLayer | Pattern = MultiHead(head_norm="rms", convolution=4)


@dataclass(frozen=True)
class GatedDeltaNet(LinearLanguage):
    """Gated DeltaNet: short convolutions, RMS norm of heads, a SiLU gate, values twice as wide (Yang et al. 2024).

    As in the authors' code, except that keys have the model's width and not three quarters of it.
    """

    mechanism: Mechanism | Pattern = MECHANISMS["gated-delta"]
    attention: AttentionLayer | Pattern = MultiHead(
        gate="channel", gate_activation="silu", head_norm="rms", value_expansion=2.0, convolution=4
    )


KDA = MultiHead(gate="channel", gate_rank=16, head_norm="rms", convolution=4, extra_rank=16)
"""The layer of Kimi delta attention. The ranks are the width of a head in the default configuration."""


@dataclass(frozen=True)
class KimiDelta(LinearLanguage):
    """KDA: Kimi delta attention in every layer, with convolutions and gates of low rank (Kimi Team 2025).

    As in transformers' Kimi Linear. Flash-linear-attention's version has a bias in the second map of the output gate.
    The ranks are those of heads of width 16: set them in `attention` with `width`.
    """

    mechanism: Mechanism | Pattern = MECHANISMS["kda"]
    attention: AttentionLayer | Pattern = KDA


@dataclass(frozen=True)
class Mamba2(LinearLanguage):
    """Mamba-2: state space duality with one query and key for all heads, and no feed-forward (Dao and Gu 2024).

    There are eight heads of width 16, twice the model's width, and states have 16 rows (the paper: 64 and 128 rows).
    Set `value_heads` in `attention` with `width`. One group only: the original also shares a key among some heads.
    """

    heads: int = 1
    feedforward: int | None = 0
    mechanism: Mechanism | Pattern = MECHANISMS["ssd"]
    attention: AttentionLayer | Pattern = MultiHead(
        gate="channel",
        gate_activation="silu",
        head_norm="all",
        norm_after_gate=True,
        head_width=16,
        value_width=16,
        value_heads=8,
        convolution=4,
        convolution_bias=True,
        skip=True,
    )


@dataclass(frozen=True)
class Based(LinearLanguage):
    """Based: layers of Taylor linear attention with narrow keys and layers of a small window (Arora et al. 2024).

    The paper's third kind of layer, a gated convolution, is left out. Keys of Taylor layers have 16 components, and
    values the width of four heads in the default configuration.
    """

    heads: int = 4
    layers: int = 2
    mechanism: Mechanism | Pattern = Pattern((MECHANISMS["taylor"], MECHANISMS["window"]))
    attention: AttentionLayer | Pattern = Pattern((MultiHead(head_width=16, value_width=16), MultiHead()))
    position: Position | Pattern = Pattern((Position(), LLAMA_ROTARY))


@dataclass(frozen=True)
class Qwen3Next(LinearLanguage):
    """Qwen3-Next's hybrid: three layers of Gated DeltaNet and one of gated softmax (Qwen team 2025).

    The linear layers have twice as many value heads as keys. The softmax layers have grouped queries, QK-norm, a
    sigmoid gate, and rotary positions on a quarter of each head. Their base is 10,000 (in the original, ten million).
    Feed-forward blocks replace the mixture of experts, and RMS norms have their scale itself instead of its difference
    from one.
    """

    layers: int = 4
    mechanism: Mechanism | Pattern = Pattern((MECHANISMS["gated-delta"],) * 3 + (MECHANISMS["softmax"],))
    attention: AttentionLayer | Pattern = Pattern(
        (MultiHead(gate="channel", gate_activation="silu", head_norm="rms", value_heads=8, convolution=4),) * 3
        + (MultiHead(gate="channel", qk_norm="head", key_heads=2),)
    )
    position: Position | Pattern = Pattern((Position(),) * 3 + (Rotary(pairs="halves", fraction=0.25),))


@dataclass(frozen=True)
class KimiLinear(LinearLanguage):
    """Kimi Linear's hybrid: three layers of KDA and one of latent attention without positions (Kimi Team 2025).

    Feed-forward blocks replace the mixture of experts. All norms have the ε `norm_eps`. In the implementation of
    transformers, the norms inside latent attention have 1e-6 in any configuration.
    """

    layers: int = 4
    mechanism: Mechanism | Pattern = Pattern((MECHANISMS["kda"],) * 3 + (MECHANISMS["softmax"],))
    attention: AttentionLayer | Pattern = Pattern((KDA,) * 3 + (Latent(rank=32, rotary_width=8),))


PUBLISHED: dict[str, Language] = {
    "transformer++": TransformerPlusPlus(),
    "gated-softmax": GatedSoftmax(),
    "retnet": RetNet(),
    "gla": GatedLinearTransformer(),
    "deltanet": DeltaNet(),
    "gated-deltanet": GatedDeltaNet(),
    "kimi-delta": KimiDelta(),
    "mamba-2": Mamba2(),
    "based": Based(),
    "qwen3-next": Qwen3Next(),
    "kimi-linear": KimiLinear(),
}
