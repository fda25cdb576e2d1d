"""`ATTENTIONS`: what stands around the mechanism of an attention layer, by name."""

from attnlab.modules.multi_head import MultiHead
from attnlab.registry import Registry

ATTENTIONS: dict[str, MultiHead] = Registry("ATTENTIONS")
ATTENTIONS |= {
    "multi-head": MultiHead(),
    "gated": MultiHead(gate="channel"),
    "gated-norm": MultiHead(gate="channel", gate_activation="silu", head_norm="rms"),
    "qk-norm": MultiHead(qk_norm="head"),
}
