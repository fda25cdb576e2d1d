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
recall and of Shakespeare. The identity has nothing to be divided by: its sums are taken as they are. Taylor and
ReBased have the first 8 components of each head, since with all 32 no width would have softmax's state; no width has
it of fast-weight, which is left to the other two.
"""

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.models import Transformer
from attnlab.ops.feature import FEATURES, Cosformer, Favor, Narrow, Rebased, Taylor
from attnlab.tasks.dates import Dates
from attnlab.training.config import Train

PLAIN = ("elu+1", "relu", "squared-relu", "exp", "t2r", "hedgehog", "hedgehog-exp", "dpfp")
MAPS = {
    "softmax": Softmax(),
    **{name: Linear(feature=FEATURES[name]) for name in PLAIN},
    "identity": Linear(feature=FEATURES["identity"], normalise=False),
    "softmax-map": Linear(feature=FEATURES["softmax"]),
    "cosformer": Linear(feature=Cosformer(length=64)),
    "taylor": Linear(feature=Narrow(Taylor(), 8)),
    "rebased": Linear(feature=Narrow(Rebased(), 8)),
    "favor+": Linear(feature=Favor(m=56)),  # with 64 rows no width would have softmax's state
}
GATES = ("retention", "gated-linear", "ssd", "lightning", "delta", "gated-delta", "kda")

study = Study(
    Experiment(
        task=Dates(),
        model=Transformer(width=64, heads=2, layers=2, feedforward=128),
        train=Train(steps=800, batch_size=64, learning_rate=(1e-3, 3e-3), warmup=100, seeds=3, save_every=500),
    ),
    Variation(
        {name: {"model.mechanism": mechanism} for name, mechanism in MAPS.items()}
        | {name: {"model.mechanism": MAPS["elu+1"], "model.decoder": MECHANISMS[name]} for name in GATES}
    ),
    question="Which feature map or gate comes nearest to softmax, on dates?",
    match="parameters",
    margin=0.01,
    quick={"task.buckets": 1, "train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 3e-3},
)
