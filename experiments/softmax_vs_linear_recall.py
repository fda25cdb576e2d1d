"""Softmax against linear attention: which feature map or gate comes nearest, on recall?

Claim: softmax recalls everything; of the others those that can overwrite, or whose features tell keys apart, come near
(Arora et al. 2023, figures 2 and 3: attention at 1 everywhere, linear and state-space models only as they grow wider).
Command: attnlab run experiments/softmax_vs_linear_recall.py
         attnlab run experiments/softmax_vs_linear_recall.py match=flops --out runs/flops
         attnlab run experiments/softmax_vs_linear_recall.py match=state --out runs/state
Minutes on two cores: 47 at equal parameters, beside another training (AMD EPYC); the others not yet measured.
Expected: accuracy of multi-query recall after 1,000 steps, 8 pairs of 16 keys and 16 values, all asked for again, at
the better of two rates, mean of 3 seeds, at equal parameters: softmax 100%, Taylor 100 in all seeds, the same; ReBased
97.5 (82-100), Hedgehog 87.0, ReLU 85.5, cosFormer 79.4, KDA 76.0, elu+1 73.4, gated-linear 69.6, exp 69.5, Hedgehog of
exponentials 68.8, softmax over features 65.9, squared ReLU 55.6, retention 54.2, lightning 53.9, the identity 53.4, T2R
50.8, gated-delta 50.7, SSD 29.9: unclear; DPFP 27.2, FAVOR+ 26.0, delta 26.0, fast-weight 25.9: worse. Naming the
commonest value told is right in 26%. A seed has learned it or not (gated-delta .27, 1, .26; elu+1 1, .26, .94), which
is why so much is unclear: what is told here is how easily each begins to learn, rather than how much it can hold. The
page has accuracy against learning rate. The same is a difference of less than one point.
    With 16 pairs of 32 keys softmax came to 99.98% of validation, and none of the 14 feature maps beyond 16.3, where
naming the commonest value told gives 15; nor did elu+1 and gated-delta in 5,000 steps, with one seed each. In Zoology's
small form (vocabulary 256, 4 pairs, 4 questions at any of 64 places) 1,000 steps brought softmax to 25.7%, which is to
name one of the four values.

ReBased and Taylor have the first 16 components of their one head: 152 and 273 features; all 64 would be ten times the
work. The identity has nothing to be divided by: its sums are taken as they are.
"""

from attnlab.lab.study import Experiment, Study
from attnlab.lab.variation import over
from attnlab.mechanisms import MECHANISMS, Linear, ShortConvolution, Softmax
from attnlab.models import Language
from attnlab.modules.position import Learned
from attnlab.ops.feature import FEATURES, Cosformer, Narrow, Rebased, Taylor
from attnlab.tasks.recall import Recall
from attnlab.training.config import Train

PLAIN = ("elu+1", "relu", "squared-relu", "exp", "t2r", "hedgehog", "hedgehog-exp", "dpfp", "favor+")
MAPS = {
    "softmax": Softmax(),
    **{name: Linear(feature=FEATURES[name]) for name in PLAIN},
    "identity": Linear(feature=FEATURES["identity"], normalise=False),
    "softmax-map": Linear(feature=FEATURES["softmax"]),
    "cosformer": Linear(feature=Cosformer(length=64)),
    "taylor": Linear(feature=Narrow(Taylor(), 16)),
    "rebased": Linear(feature=Narrow(Rebased(), 16)),
}
NAMES = ("retention", "gated-linear", "ssd", "lightning", "fast-weight", "delta", "gated-delta", "kda")
GATES = {name: MECHANISMS[name] for name in NAMES}
SHORT = {name: ShortConvolution(mechanism) for name, mechanism in (MAPS | GATES).items()}

study = Study(
    Experiment(
        task=Recall(vocabulary=64, pairs=16, queries=16),
        model=Language(width=64, heads=1, layers=2, feedforward=128, position=Learned(), mechanism=SHORT["softmax"]),
        train=Train(steps=600, batch_size=32, learning_rate=3e-3, warmup=100, seeds=3),
    ),
    over("model.mechanism", **SHORT),
    question="Which feature map or gate comes nearest to softmax, on recall?",
    match="parameters",
    margin=0.01,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2},
)
