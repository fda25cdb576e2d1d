"""Softmax against linear attention: which feature map or gate comes nearest, on recall?

Claim: softmax recalls everything; of the others those that can overwrite, or whose features tell keys apart, come near
(Arora et al. 2023, figures 2 and 3: attention at 1 everywhere, linear and state-space models only as they grow wider).
Command: attnlab run experiments/softmax_vs_linear_recall.py
         attnlab run experiments/softmax_vs_linear_recall.py match=flops --out runs/flops
         attnlab run experiments/softmax_vs_linear_recall.py match=state --out runs/state
Minutes on two cores: not yet measured.
Expected: accuracy of multi-query recall, 8 pairs of 16 keys and 16 values, all asked for again; not yet measured. The
page has
accuracy against learning rate: success is known to live in narrow bands of it. The same is a difference of less than
one point. In Zoology's small form (vocabulary 256, 4 pairs, 4 questions at any of 64 places) as many steps brought
softmax to 25.7%, which is to name one of the four values.

ReBased and Taylor have the first 16 components of their one head: 152 and 273 features; all 64 would be ten times the
work. The identity has nothing to be divided by: its sums are taken as they are.
"""

from attnlab.lab.study import Experiment, Study
from attnlab.lab.variation import over
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.models import Language
from attnlab.ops.feature import FEATURES, Cosformer, Narrow, Rebased, Taylor
from attnlab.tasks.recall import Recall
from attnlab.training.config import Train

PLAIN = ("elu+1", "relu", "squared-relu", "exp", "t2r", "hedgehog", "hedgehog-exp", "dpfp", "favor+")
MAPS = {
    **{name: Linear(feature=FEATURES[name]) for name in PLAIN},
    "identity": Linear(feature=FEATURES["identity"], normalise=False),
    "softmax-map": Linear(feature=FEATURES["softmax"]),
    "cosformer": Linear(feature=Cosformer(length=64)),
    "taylor": Linear(feature=Narrow(Taylor(), 16)),
    "rebased": Linear(feature=Narrow(Rebased(), 16)),
}
GATES = ("retention", "gated-linear", "ssd", "lightning", "fast-weight", "delta", "gated-delta", "kda")

study = Study(
    Experiment(
        task=Recall(vocabulary=32, pairs=8, queries=8),
        model=Language(width=64, heads=1, layers=2, feedforward=128),
        train=Train(steps=1000, batch_size=32, learning_rate=(1e-3, 3e-3), warmup=100, seeds=3),
    ),
    over("model.mechanism", softmax=Softmax(), **MAPS, **{name: MECHANISMS[name] for name in GATES}),
    question="Which feature map or gate comes nearest to softmax, on recall?",
    match="parameters",
    margin=0.01,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
)
