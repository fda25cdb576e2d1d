"""`ATTENTIONS`: attention layers that contain the mechanism (projections, gate, norms, head widths), by name."""

from attnlab.modules.attention_layer import AttentionLayer
from attnlab.modules.latent import Latent
from attnlab.modules.multi_head import MultiHead
from attnlab.registry import Registry

ATTENTIONS: dict[str, AttentionLayer] = Registry("ATTENTIONS")
ATTENTIONS |= {
    "multi-head": MultiHead(),
    "gated": MultiHead(gate="channel"),
    "gated-norm": MultiHead(gate="channel", gate_activation="silu", head_norm="rms"),
    "qk-norm": MultiHead(qk_norm="head"),
    "latent": Latent(),
}
