"""Softmax against linear attention: which feature map or gate comes closest, on the characters of Shakespeare?

Claim: on 64 characters a matrix-valued state has enough capacity, and gates that forget cost little or improve the
loss.
Command: ATTNLAB_DATA=... attnlab run experiments/softmax_vs_linear_text.py
         ATTNLAB_DATA=... attnlab run experiments/softmax_vs_linear_text.py match=flops --out runs/flops
         ATTNLAB_DATA=... attnlab run experiments/softmax_vs_linear_text.py match=state model.width=40 --out runs/state
Minutes on two cores: at one learning rate (train.learning_rate=3e-3) and while another training ran (AMD EPYC) 72 at
equal parameters, 113 at equal FLOPs and 126 at equal state, the last two on one core each.
To be measured again: the numbers of Hedgehog, delta, gated-delta, KDA and gated-linear. They were measured before these
used the scales of their authors' code.
Expected: nats per character on the last tenth after 700 steps, mean of 3 seeds. "The same" means a difference of less
than .02 nats. An interpolated n-gram model of five characters has 1.669.

At equal parameters and the learning rate .003. Unclear: KDA 1.88 (1.84-1.92), gated-delta 1.91 (1.91-1.92), SSD 1.94,
softmax 1.94 (1.91-1.98), fast-weight 1.97, delta 1.99, Hedgehog of exponentials 2.01, exp and Taylor 2.06, T2R 2.06,
FAVOR+ 2.08, ReBased 2.18. Worse: Hedgehog 2.01, softmax over features 2.06, elu+1 2.07 (2.06-2.08), gated-linear 2.08,
cosFormer 2.08, squared ReLU and ReLU 2.09, DPFP 2.12, retention 2.29, lightning 2.30 and the identity 2.38 (2.37-2.40).
Mechanisms with a fixed decay are the worst except for the identity. Of those whose decay depends on the input, KDA,
gated-delta and SSD do not differ significantly from softmax, and gated-linear is worse.

At equal FLOPs of a step, where delta rules become narrower (width 60 instead of 80). Unclear: KDA 1.89 (1.88-1.90),
softmax 1.95 (1.91-1.98), SSD 1.95, gated-delta 1.96, Hedgehog 2.04 and eight more. Worse: delta 2.06 (2.03-2.08), exp
2.06, gated-linear 2.07, FAVOR+ 2.11, DPFP 2.14, retention 2.30, lightning 2.31 and the identity 2.40. Taylor 2.06
(2.03-2.09) and ReBased 2.19 (2.16-2.21) were measured again after they began to compute pairs by their kernel. They are
worse in that study of three variants, which are these two and softmax (1.94, 1.92-1.97).

At equal decoding state, which for softmax is a cache of 64 keys and values. From width 40 most others grow to 102 or
104 (from 80 it would be 144), with 3.4 to 3.8 times its parameters, while Taylor and ReBased shrink. KDA 1.84
(1.83-1.85) and fast-weight 1.98 are better than softmax, 2.13 (2.06-2.19). None is worse, and the rest is unclear:
gated-delta 1.88, SSD 1.91, delta 1.95, T2R 2.00, elu+1 2.01, Hedgehog 2.04, FAVOR+ 2.21, Taylor 2.28, retention and
lightning 2.29, ReBased 2.32, the identity 2.37. This study does not separate the effect of the state from the effect of
the other parameters of a wider model.

ReBased and Taylor get the first 12 components of each head. The identity has no normaliser: its sums are used as they
are.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.models import Language
from attnlab.ops.feature import FEATURES, Cosformer, Narrow, Rebased, Taylor
from attnlab.tasks.text.text import Shakespeare
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
    question="Which feature map or gate comes closest to softmax, on the characters of Shakespeare?",
    match="parameters",
    margin=0.02,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
)
