"""How values are mixed: one mechanism a file, behind the contract of `base`; no parameters.

`MECHANISMS` lists them by name: the line that adds one brings it into the contract suite, the command line, and every
ablation. One's own joins by `attnlab.MECHANISMS["mine"] = Mine()`.
"""

from attnlab.mechanisms.base import Mechanism, State
from attnlab.mechanisms.bigbird import BigBird
from attnlab.mechanisms.causal import causal
from attnlab.mechanisms.cost import Cost
from attnlab.mechanisms.delta import Delta
from attnlab.mechanisms.fast_weight import FastWeight
from attnlab.mechanisms.gated_delta import GatedDelta
from attnlab.mechanisms.gated_linear import GatedLinear
from attnlab.mechanisms.kda import Kda
from attnlab.mechanisms.lightning import Lightning
from attnlab.mechanisms.linear import Linear
from attnlab.mechanisms.linformer import Linformer
from attnlab.mechanisms.longformer import Longformer
from attnlab.mechanisms.maps import Watched, weights
from attnlab.mechanisms.nystrom import Nystrom
from attnlab.mechanisms.reformer import Reformer
from attnlab.mechanisms.retention import Retention
from attnlab.mechanisms.short_convolution import ShortConvolution
from attnlab.mechanisms.sigmoid import Sigmoid
from attnlab.mechanisms.sinkhorn import Sinkhorn
from attnlab.mechanisms.softmax import Softmax
from attnlab.mechanisms.ssd import Ssd
from attnlab.mechanisms.strided import Strided
from attnlab.mechanisms.synthesizer import Synthesizer
from attnlab.mechanisms.window import Local, LocalP
from attnlab.ops.feature import Cosformer, Dpfp, Favor, Hedgehog, Rebased, Taylor
from attnlab.registry import Registry

MECHANISMS: dict[str, Mechanism] = Registry("MECHANISMS")
MECHANISMS |= {
    "softmax": Softmax(),
    "softmax-blockwise": Softmax(block=512),
    "sigmoid": Sigmoid(),
    "window": Local(),
    "local-p": LocalP(),
    "strided": Strided(),
    "longformer": Longformer(),
    "bigbird": BigBird(),
    "reformer": Reformer(),
    "linformer": Linformer(),
    "nystrom": Nystrom(),
    "sinkhorn": Sinkhorn(),
    "synthesizer": Synthesizer(),
    "linear": Linear(),
    "performer": Linear(feature=Favor()),
    "cosformer": Linear(feature=Cosformer()),
    "taylor": Linear(feature=Taylor()),
    "rebased": Linear(feature=Rebased()),
    "hedgehog": Linear(feature=Hedgehog()),
    "dpfp": Linear(feature=Dpfp()),
    "retention": Retention(),
    "lightning": Lightning(),
    "ssd": Ssd(),
    "gated-linear": GatedLinear(),
    "fast-weight": FastWeight(),
    "delta": Delta(),
    "gated-delta": GatedDelta(),
    "kda": Kda(),
    "short-convolution": ShortConvolution(),
}

__all__ = [
    "MECHANISMS",
    "Cost",
    "Linear",
    "Mechanism",
    "ShortConvolution",
    "Softmax",
    "State",
    "Watched",
    "causal",
    "weights",
]
