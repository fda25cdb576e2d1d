"""Softmax against linear attention: which feature map or gate comes nearest, on the characters of Shakespeare?

Claim: on 64 characters the memory of a matrix is no narrow place, and gates that forget cost little or win.
Command: ATTNLAB_DATA=... attnlab run experiments/softmax_vs_linear_text.py
         ATTNLAB_DATA=... attnlab run experiments/softmax_vs_linear_text.py match=flops --out runs/flops
         ATTNLAB_DATA=... attnlab run experiments/softmax_vs_linear_text.py match=state --out runs/state
Minutes on two cores: 72 at equal parameters at one rate (train.learning_rate=3e-3), beside another training (AMD EPYC);
the others not yet measured.
Expected: nats a character on the last tenth after 700 steps, mean of 3 seeds, at equal parameters and the rate .003:
KDA 1.88 (1.84-1.92), gated-delta 1.91 (1.91-1.92), SSD 1.94, softmax 1.94 (1.91-1.98), fast-weight 1.97, delta 1.99,
Hedgehog of exponentials 2.01, exp and Taylor 2.06, T2R 2.06, FAVOR+ 2.08, ReBased 2.18: unclear; Hedgehog 2.01, softmax
over features 2.06, elu+1 2.07 (2.06-2.08), gated-linear 2.08, cosFormer 2.08, squared ReLU and ReLU 2.09, DPFP 2.12,
retention 2.29, lightning 2.30 and the identity 2.38 (2.37-2.40): worse. Those that forget at a fixed pace are worst but
for the identity; of those that forget by what they read KDA, gated-delta and SSD are not told from softmax, and
gated-linear is worse. The floor of counting five characters is 1.669. The same is a difference of less than .02 nats.

ReBased and Taylor have the first 12 components of each head; the identity has nothing to be divided by: its sums are
taken as they are.
"""

from attnlab.lab.study import Experiment, Study
from attnlab.lab.variation import over
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.models import Language
from attnlab.ops.feature import FEATURES, Cosformer, Narrow, Rebased, Taylor
from attnlab.tasks.text import Shakespeare
from attnlab.training.config import Train

PLAIN = ("elu+1", "relu", "squared-relu", "exp", "t2r", "hedgehog", "hedgehog-exp", "dpfp", "favor+")
MAPS = {
    **{name: Linear(feature=FEATURES[name]) for name in PLAIN},
    "identity": Linear(feature=FEATURES["identity"], normalise=False),
    "softmax-map": Linear(feature=FEATURES["softmax"]),
    "cosformer": Linear(feature=Cosformer(length=64)),
    "taylor": Linear(feature=Narrow(Taylor(), 12)),
    "rebased": Linear(feature=Narrow(Rebased(), 12)),
}
GATES = ("retention", "gated-linear", "ssd", "lightning", "fast-weight", "delta", "gated-delta", "kda")

study = Study(
    Experiment(
        task=Shakespeare(length=64),
        model=Language(width=80, heads=2, layers=2, feedforward=256),
        train=Train(steps=700, batch_size=32, learning_rate=(1e-3, 3e-3), warmup=100, seeds=3),
    ),
    over("model.mechanism", softmax=Softmax(), **MAPS, **{name: MECHANISMS[name] for name in GATES}),
    question="Which feature map or gate comes nearest to softmax, on the characters of Shakespeare?",
    match="parameters",
    margin=0.02,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
)
