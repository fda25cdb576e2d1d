"""Equal dimension: at one number of features, does the choice of the feature map still matter to recall?

Claim: it is asked, not known: published comparisons give each map the number of features that it happens to have (at a
key width of 64: elu+1 64, DPFP-1 128, the second-order Taylor map 4161). If room is all, maps of equal dimension are
equal within their intervals; what remains between them is their shape.
Command: attnlab run experiments/equal_dimension.py
         attnlab run experiments/equal_dimension.py task.pairs=16 task.queries=16 --out runs/equal_dimension_16
Minutes on two cores: 40, on one of them beside other work (elu+1 counted by its step of .13 s).
To be measured again: the numbers of Hedgehog, which were measured before it took its authors' scales.
Expected: accuracy, 3 seeds at the rate better on validation; no number has been published. Softmax, squared ReLU and
Taylor 100% in every seed, ReLU 99.7% [98.3, 100], elu+1 99.0% [93.1, 100]; seed by seed DPFP-2 95.9, 99.7 and 30.9,
ReBased 95.9, 90.6 and 27.4, Hedgehog 78.1, 25.9 and 91.6, DPFP-1 96.0, 26.2 and 26.0; FAVOR+ 29.0% [19.7, 35.5]. So
room is not all: FAVOR+ is worse than softmax (−71 points, corrected for nine comparisons). What the four are worth
that learn in some seeds only, three seeds cannot tell. It is not the few components either: Taylor has the fewest.

Design. One head of width 64 in each of two layers, so that values are 64 wide; every map has M = 64 features, by
giving it only the first so many components of queries and keys (`narrow`): elu+1, ReLU and squared ReLU all 64;
Hedgehog and DPFP-1 32; DPFP-2 16; the squares of ReBased 8; FAVOR+ all 64 and 32 random rows. Taylor has no width with
64 features and has 57 (7 components): fewer, so that nothing it wins is won by room. State (64 × 65 numbers a layer;
Taylor 57 × 65), width, layers, data, order of data and steps are the same for all; parameters differ only by what a
map learns, and the components that a narrow map leaves out are parameters without use. The task tells 8 different
pairs of 16 keys and 16 values and asks for all 8 in another order (multi-query recall, Arora et al. 2023): fewer pairs
than features, so that room is not what stops a map; the second command tells all 16. Learning rate: success is known
to live in narrow bands of it, so each map has 1e-3 and 3e-3 and the better on validation counts; metrics.jsonl keeps
both. What this cannot tell: one size, one task, no convolution before the keys, 3 seeds.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.mechanisms import Linear, Softmax
from attnlab.models import Language
from attnlab.ops.feature import Dpfp, EluPlusOne, Favor, Feature, Hedgehog, Narrow, Rebased, Relu, SquaredRelu, Taylor
from attnlab.tasks.synthetic.recall import Recall
from attnlab.training.config import Train


def of(feature: Feature, width: int = 64) -> Linear:
    """Linear attention with a map of the first `width` components."""
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
    question="At one number of features, does the choice of the feature map still matter to recall?",
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
)
