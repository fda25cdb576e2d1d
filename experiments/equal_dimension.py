"""Equal dimension: does the choice of the feature map matter for recall, at an equal number of features?

Claim: none; the study asks. Published comparisons give each map the number of features that it happens to have (at a
key width of 64: elu+1 64, DPFP-1 128, the second-order Taylor map 4161). If only capacity matters, maps of equal
dimension are equal within their intervals. Any remaining difference comes from the form of the map.
Command: attnlab run experiments/equal_dimension.py
         attnlab run experiments/equal_dimension.py task.pairs=16 task.queries=16 --out runs/equal_dimension_16
Minutes on two cores: 40, on one of them while other programs ran (elu+1 computed from its step time of .13 s).
Expected: accuracy, 3 seeds at the learning rate that is better on validation. No number has been published. Softmax,
squared ReLU and Taylor reach 100% in every seed, ReLU 99.7% [98.3, 100], elu+1 99.0% [93.1, 100], Hedgehog 92.8%
[74.1, 100], in a study of its own with softmax, after it took the scales of its authors' code (before that 78.1, 25.9
and 91.6 by seed). By seed: DPFP-2 95.9, 99.7 and 30.9, ReBased 95.9, 90.6 and 27.4, DPFP-1 96.0, 26.2 and 26.0. FAVOR+
reaches 29.0% [19.7, 35.5]. So capacity is not all that matters: FAVOR+ is worse than softmax (−71 points, corrected for
nine comparisons). Three seeds cannot show how good the three maps are that learn in some seeds only. The small number
of components is not the cause either: Taylor has the fewest.

Design. There is one head of width 64 in each of two layers, so that values are 64 wide. Every map has M = 64 features,
because it gets only as many of the first components of queries and keys as that requires (`narrow`): elu+1, ReLU and
squared ReLU all 64; Hedgehog and DPFP-1 32; DPFP-2 16; the squares of ReBased 8; FAVOR+ all 64 and 32 random rows.
Taylor has no width with 64 features and gets 57 (7 components). These are fewer, so that capacity cannot explain an
advantage of Taylor.
State (64 × 65 numbers per layer; Taylor 57 × 65), width, layers, data, order of data and steps are the same for all.
Parameters differ only by what a map learns. The components that a narrow map leaves out are unused parameters. The task
shows 8 different pairs of 16 keys and 16 values and asks for all 8 in another order (multi-query recall, Arora et al.
2023). These are fewer pairs than features, so that capacity does not limit any map; the second command shows all 16
(softmax 100% in every seed, Hedgehog 96.6, 55.8 and 96.2; the others were not measured). Recall is known to succeed
only in narrow ranges of the learning rate, so each map is trained at 1e-3 and 3e-3, and the rate that is better on
validation counts; metrics.jsonl has both. Limits: one size, one task, no convolution before the keys, 3 seeds.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.mechanisms import Linear, Softmax
from attnlab.models import Language
from attnlab.ops.feature import Dpfp, EluPlusOne, Favor, Feature, Hedgehog, Narrow, Rebased, Relu, SquaredRelu, Taylor
from attnlab.tasks.synthetic.recall import Recall
from attnlab.training.config import Train


def of(feature: Feature, width: int = 64) -> Linear:
    """Return linear attention with a feature map of the first `width` components."""
    return Linear(feature=Narrow(feature, width))


study = Study(
    Experiment(
        task=Recall(vocabulary=32, pairs=8, queries=8),
        model=Language(width=64, heads=1, layers=2, feedforward=128),
        train=Train(
            steps=2000,
            batch_size=32,
            learning_rate=(1e-3, 3e-3),
            warmup=100,
            seeds=3,
            evaluate_every=250,
            save_every=1000,
        ),
    ),
    over(
        "model.mechanism",
        softmax=Softmax(),
        elu=of(EluPlusOne()),
        relu=of(Relu()),
        squared_relu=of(SquaredRelu()),
        hedgehog=of(Hedgehog(), 32),
        dpfp1=of(Dpfp(nu=1), 32),
        dpfp2=of(Dpfp(nu=2), 16),
        rebased=of(Rebased(), 8),
        taylor=of(Taylor(), 7),
        favor=of(Favor(m=32)),
    ),
    question="Does the choice of the feature map matter for recall, at an equal number of features?",
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
)
