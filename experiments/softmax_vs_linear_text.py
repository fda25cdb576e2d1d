"""Softmax against linear attention: which feature map or gate comes nearest, on the characters of Shakespeare?

Claim: on 64 characters the memory of a matrix is no narrow place, and gates that forget cost little or win.
Command: ATTNLAB_DATA=... attnlab run experiments/softmax_vs_linear_text.py
         ATTNLAB_DATA=... attnlab run experiments/softmax_vs_linear_text.py match=flops --out runs/flops
         ATTNLAB_DATA=... attnlab run experiments/softmax_vs_linear_text.py match=state --out runs/state
Minutes on two cores: not yet measured.
Expected: nats a character on the last tenth; not yet measured. The floor of counting five characters is 1.669. The same
is a difference of less than .02 nats.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.mechanisms import MECHANISMS
from attnlab.models import Language
from attnlab.tasks.text import Shakespeare
from attnlab.training.config import Train

NAMES = (
    *("softmax", "linear", "performer", "cosformer", "rebased", "hedgehog", "dpfp"),
    *("retention", "gated-linear", "ssd", "lightning", "delta", "gated-delta", "kda"),
)

study = Study(
    Experiment(
        task=Shakespeare(length=64),
        model=Language(width=80, heads=2, layers=2, feedforward=256),
        train=Train(steps=1000, batch_size=32, learning_rate=(1e-3, 3e-3), warmup=100, seeds=3),
    ),
    over("model.mechanism", **{name: MECHANISMS[name] for name in NAMES}),
    question="Which feature map or gate comes nearest to softmax, on the characters of Shakespeare?",
    match="parameters",
    margin=0.02,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
)
