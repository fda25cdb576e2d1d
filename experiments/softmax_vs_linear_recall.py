"""Softmax against linear attention: which feature map or gate comes nearest, on recall?

Claim: softmax recalls everything; of the others those that can overwrite, or whose features tell keys apart, come near
(Arora et al. 2023, figures 2 and 3: attention at 1 everywhere, linear and state-space models only as they grow wider).
Command: attnlab run experiments/softmax_vs_linear_recall.py
         attnlab run experiments/softmax_vs_linear_recall.py match=flops --out runs/flops
         attnlab run experiments/softmax_vs_linear_recall.py match=state --out runs/state
Minutes on two cores: not yet measured.
Expected: accuracy of multi-query recall (vocabulary 256, 4 pairs, 64 tokens); not yet measured. The page has accuracy
against learning rate: success is known to live in narrow bands of it. The same is a difference of less than one point.

ReBased has the first 16 components of its one head: 152 features; all 64 would be 2,144, and ten times the work.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.mechanisms import MECHANISMS, Linear
from attnlab.models import Language
from attnlab.ops.feature import Narrow, Rebased
from attnlab.tasks.recall import Recall
from attnlab.training.config import Train

NAMES = (
    *("softmax", "linear", "performer", "cosformer", "rebased", "hedgehog", "dpfp"),
    *("retention", "gated-linear", "ssd", "lightning", "delta", "gated-delta", "kda"),
)
REBASED = Linear(feature=Narrow(Rebased(), 16))

study = Study(
    Experiment(
        task=Recall(vocabulary=256, pairs=4, queries=4, length=64),
        model=Language(width=64, heads=1, layers=2, feedforward=128),
        train=Train(steps=1500, batch_size=32, learning_rate=(1e-3, 3e-3), warmup=100, seeds=3),
    ),
    over("model.mechanism", **{name: MECHANISMS[name] for name in NAMES} | {"rebased": REBASED}),
    question="Which feature map or gate comes nearest to softmax, on recall?",
    match="parameters",
    margin=0.01,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
)
