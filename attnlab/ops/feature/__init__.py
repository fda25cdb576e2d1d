"""Feature maps φ and ψ of linear attention, which map q and k to the space in which their product is the weight.

A feature map is a frozen dataclass. `FEATURES` lists instances by name.
"""

from attnlab.ops.feature.base import Feature, FeatureRows
from attnlab.ops.feature.elementwise import EluPlusOne, Exp, Identity, Relu, SoftmaxFeatures, SquaredRelu
from attnlab.ops.feature.learned import T2R, Hedgehog, Rebased
from attnlab.ops.feature.narrow import Narrow
from attnlab.ops.feature.position import Cosformer
from attnlab.ops.feature.power import Power
from attnlab.ops.feature.products import Dpfp, Taylor
from attnlab.ops.feature.random import Favor
from attnlab.ops.feature.rotated import RotatedFeatures
from attnlab.registry import Registry

FEATURES: dict[str, Feature] = Registry("FEATURES")
FEATURES |= {
    "elu+1": EluPlusOne(),
    "identity": Identity(),
    "relu": Relu(),
    "squared-relu": SquaredRelu(),
    "exp": Exp(),
    "softmax": SoftmaxFeatures(),
    "t2r": T2R(),
    "hedgehog": Hedgehog(),
    "hedgehog-exp": Hedgehog(activation=Exp()),
    "cosformer": Cosformer(),
    "taylor": Taylor(),
    "power": Power(),
    "rebased": Rebased(),
    "dpfp": Dpfp(),
    "favor+": Favor(),
    "narrow": Narrow(),
}

__all__ = [
    "FEATURES",
    "T2R",
    "Cosformer",
    "Dpfp",
    "EluPlusOne",
    "Exp",
    "Favor",
    "Feature",
    "FeatureRows",
    "Hedgehog",
    "Identity",
    "Narrow",
    "Power",
    "Rebased",
    "Relu",
    "RotatedFeatures",
    "SoftmaxFeatures",
    "SquaredRelu",
    "Taylor",
]
