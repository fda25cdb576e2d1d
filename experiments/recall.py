"""Recall against learning rate and state: who can look up what it was told, at which rates, with how much memory?

Claim: softmax attention recalls at every width; what keeps a state of fixed size needs more of it, and learns within a
narrower band of learning rates (Arora et al. 2023, figures 2 and 3; later work of 3,000 runs found success to live in
such bands). The best of several rates alone would not show that: the page has accuracy against rate, and against state.
Command: attnlab run experiments/recall.py
Minutes on two cores: 77, counted by their steps, beside another training (AMD EPYC); Taylor of width 64 alone 11.
To be measured again: the numbers of delta, gated-delta and gated-linear, which were measured before they took their
authors' scales.
Expected: accuracy of multi-query recall after 1,000 steps, each variant at its best of four rates, 3 seeds: softmax
100% at both widths; of width 64 delta .139, .999, .999, gated-delta .143, 1, .99, Taylor .97, .15, .93, gated-linear
.28, .44, .93 in their seeds, elu+1 16% (3-23); of width 32 all but softmax 14 or 15%. Naming the commonest value
told is right in 15%. So each seed has learned it or not, and three of them tell none apart from softmax: where seeds
of a variant lie in two heaps, it takes five pairs or more that agree to claim a difference as large. On the validation
softmax of width 64 has it at .001, .003 and .01, of width 32 at .01, and in two seeds at .003; the others at .003
alone, but for gated-delta (one seed at .001, one at .01). Bytes of decoding state: softmax 25 and 50 thousand, delta
and gates 8 and 33, Taylor 72 and 142. The same is a difference of less than two points. What these lack is a short
convolution before them, as delta rules and gates are published with: experiments/short_convolution.py.

Two layers of attention alone with one head, as in Zoology's small form. What differs: 16 pairs of 32 keys and 32
values, all asked for at once behind them (there 256 symbols, and 4 pairs among 64 places, asked for mostly soon after
they were told); sequences are drawn anew for every step (there 10,000 of them, told again and again); and the widths
(there 128). The small form itself takes softmax more steps than can be had here: 1,000 brought it to 25.7%, which is to
name one of the four values. Taylor has the first 16 components of queries and keys.
"""

from attnlab.lab.study import Experiment, Study, over, product
from attnlab.mechanisms import Delta, GatedDelta, GatedLinear, Linear, Softmax
from attnlab.models import Language
from attnlab.ops.feature import EluPlusOne, Narrow, Taylor
from attnlab.tasks.synthetic.recall import Recall
from attnlab.training.config import Train

RATES = (3e-4, 1e-3, 3e-3, 1e-2)

study = Study(
    Experiment(
        task=Recall(vocabulary=64, pairs=16, queries=16),
        model=Language(width=64, heads=1, layers=2, feedforward=0),
        train=Train(
            steps=1000,
            batch_size=32,
            learning_rate=RATES,
            warmup=100,
            seeds=3,
            evaluate_every=500,
            save_every=1000,
        ),
    ),
    product(
        over(
            "model.mechanism",
            **{
                "softmax": Softmax(),
                "elu": Linear(feature=EluPlusOne()),
                "taylor": Linear(feature=Narrow(Taylor(), 16)),
                "gated-linear": GatedLinear(),
                "delta": Delta(),
                "gated-delta": GatedDelta(),
            },
        ),
        over("model.width", **{"32": 32, "64": 64}),
    ),
    # Each with softmax of its own width.
    against={f"{name}-64": "softmax-64" for name in ("elu", "taylor", "gated-linear", "delta", "gated-delta")},
    question="Who can look up what it was told, at which learning rates, with how much memory?",
    margin=0.02,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
    bands={"softmax-32": (0.95, None), "softmax-64": (0.95, None)},
)
