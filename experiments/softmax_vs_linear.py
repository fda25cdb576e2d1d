"""Softmax against linear attention: which feature map or gate comes nearest, on dates?

Claim: it is asked, at equal parameters, at equal FLOPs of a step, and at equal decoding state: three questions with
three answers. At equal state softmax has the narrower model.
Command: attnlab run experiments/softmax_vs_linear.py
         attnlab run experiments/softmax_vs_linear.py match=flops --out runs/flops
         attnlab run experiments/softmax_vs_linear.py match=state --out runs/state
Minutes on two cores: not yet measured.
Expected: exact match on the test dates, each variant at the better of two rates; not yet measured. The same is a
difference of less than one point.

Feature maps stand in encoder, decoder and cross-attention. Gates and delta rules read the past alone: they stand in the
decoder, with elu+1 in the encoder and across. experiments/softmax_vs_linear_recall.py and ..._text.py ask the same of
recall and of Shakespeare.
"""

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.mechanisms import MECHANISMS, Linear
from attnlab.models import Transformer
from attnlab.ops.feature import Favor
from attnlab.tasks.dates import Dates
from attnlab.training.config import Train

MAPS = ("softmax", "linear", "performer", "cosformer", "rebased", "hedgehog", "dpfp")
GATES = ("retention", "gated-linear", "ssd", "lightning", "delta", "gated-delta", "kda")
PERFORMER = Linear(feature=Favor(m=56))  # with 64 rows no width would have softmax's state

study = Study(
    Experiment(
        task=Dates(),
        model=Transformer(width=64, heads=2, layers=2, feedforward=128),
        train=Train(steps=1500, batch_size=64, learning_rate=(1e-3, 3e-3), warmup=100, seeds=3, save_every=500),
    ),
    Variation(
        {name: {"model.mechanism": MECHANISMS[name]} for name in MAPS}
        | {"performer": {"model.mechanism": PERFORMER}}
        | {name: {"model.mechanism": MECHANISMS["linear"], "model.decoder": MECHANISMS[name]} for name in GATES}
    ),
    question="Which feature map or gate comes nearest to softmax, on dates?",
    match="parameters",
    margin=0.01,
    quick={"task.buckets": 1, "train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 3e-3},
)
