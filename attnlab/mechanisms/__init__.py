"""Mechanisms: how attention mixes values. One mechanism per file, without parameters.

Every mechanism implements the contract of `attnlab.mechanisms.base.Mechanism`, as one of three kinds: `Pairwise`,
`Recurrent` or `Whole`. `MECHANISMS` maps names to default
instances. A mechanism that is added to this dict is covered by the contract suite, and is available on the command line
and in every study. Add your own with `attnlab.MECHANISMS["mine"] = Mine()`.

memory: the mechanism's part of `State`, for example a cache of keys and values, or a sum.

Letters that are used in shapes throughout attnlab. Batch and head axes are usually absent, because code is written for
one example and one head.

- T: queries. In causal forms also the new tokens, which are both queries and keys.
- S: keys.
- K: width of a query or key in one head.
- V: width of a value in one head. In decoding: symbols of the vocabulary.
- D: width of the model.
- H: heads. In recurrent cells: hidden units. In images [B H W C]: height.
- B: examples in a batch.
- L: layers.
- N, C: chunks, and tokens per chunk. Elsewhere N also counts cache slots or the nodes of a graph, and C channels.
- M: features of a feature map.
- E: edges of a graph.
- F: output features per node of a graph layer.
- G: gates. Decay gates per token are 1 (shared by all channels) or K (one per channel). In recurrent cells, G counts
  all gates of the H units: 3H for a GRU, 4H for an LSTM.
"""

from attnlab.mechanisms.base import Mechanism, State, Traits
from attnlab.mechanisms.bidirectional import Bidirectional
from attnlab.mechanisms.bigbird import BigBird
from attnlab.mechanisms.causal import causal
from attnlab.mechanisms.checked import CheckedMechanism
from attnlab.mechanisms.cost import Cost
from attnlab.mechanisms.delta import Delta
from attnlab.mechanisms.delta_product import DeltaProduct
from attnlab.mechanisms.differential import Differential, Differential2
from attnlab.mechanisms.fast_weight import FastWeight
from attnlab.mechanisms.forgetting import Forgetting
from attnlab.mechanisms.gated_delta import GatedDelta
from attnlab.mechanisms.gated_delta2 import GatedDelta2
from attnlab.mechanisms.gated_linear import GatedLinear
from attnlab.mechanisms.gsa import GatedSlots
from attnlab.mechanisms.hgrn2 import Hgrn2
from attnlab.mechanisms.kda import Kda
from attnlab.mechanisms.lightning import Lightning
from attnlab.mechanisms.linear import Linear
from attnlab.mechanisms.linformer import Linformer
from attnlab.mechanisms.log_linear import LogLinear
from attnlab.mechanisms.longformer import Longformer
from attnlab.mechanisms.mamba import Mamba
from attnlab.mechanisms.mamba3 import Mamba3
from attnlab.mechanisms.maps import weights
from attnlab.mechanisms.mesa import Mesa
from attnlab.mechanisms.mlstm import Mlstm
from attnlab.mechanisms.moba import BlockMixture
from attnlab.mechanisms.nsa import NativeSparse
from attnlab.mechanisms.nystrom import Nystrom
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.mechanisms.path import Path
from attnlab.mechanisms.recurrent import Recurrent
from attnlab.mechanisms.reformer import Reformer
from attnlab.mechanisms.retention import Retention
from attnlab.mechanisms.rwkv7 import Rwkv7
from attnlab.mechanisms.short_convolution import ShortConvolution
from attnlab.mechanisms.sigmoid import Sigmoid
from attnlab.mechanisms.sinkhorn import Sinkhorn
from attnlab.mechanisms.softmax import Softmax
from attnlab.mechanisms.ssd import Ssd
from attnlab.mechanisms.stick_breaking import StickBreaking
from attnlab.mechanisms.strided import Strided
from attnlab.mechanisms.synthesizer import Synthesizer
from attnlab.mechanisms.whole import Whole
from attnlab.mechanisms.window import Local, LocalP
from attnlab.mechanisms.wrapper import Wrapper
from attnlab.ops.feature import Cosformer, Dpfp, Favor, Hedgehog, Power, Rebased, Taylor
from attnlab.registry import Registry

MECHANISMS: dict[str, CheckedMechanism] = Registry("MECHANISMS")
MECHANISMS |= {
    "softmax": Softmax(),
    "softmax-blockwise": Softmax(block=512),
    "softmax-sink": Softmax(sink="learned"),
    "softmax-plus-one": Softmax(sink="zero"),
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
    "power": Linear(feature=Power()),
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
    "gated-delta-2": GatedDelta2(),
    "delta-product": DeltaProduct(),
    "log-linear": LogLinear(),
    "hgrn2": Hgrn2(),
    "mlstm": Mlstm(),
    "gsa": GatedSlots(),
    "mesa": Mesa(),
    "rwkv7": Rwkv7(),
    "mamba": Mamba(),
    "mamba3": Mamba3(),
    "bidirectional": Bidirectional(),
    "differential": Differential(),
    "differential-2": Differential2(),
    "moba": BlockMixture(),
    "nsa": NativeSparse(),
    "path": Path(),
    "forgetting": Forgetting(),
    "stick-breaking": StickBreaking(),
    "short-convolution": ShortConvolution(),
}


__all__ = [
    "MECHANISMS",
    "CheckedMechanism",
    "Cost",
    "Linear",
    "Mechanism",
    "Pairwise",
    "Recurrent",
    "ShortConvolution",
    "Softmax",
    "State",
    "Traits",
    "Whole",
    "Wrapper",
    "causal",
    "weights",
]
