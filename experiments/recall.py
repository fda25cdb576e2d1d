"""Recall, learning rate and state: which mechanisms recall the value of a key, at which rates, with how much memory?

Claim: softmax attention recalls at every width. A mechanism with a state of fixed size needs a larger one, and learns
within a narrower range of learning rates (Arora et al. 2023, figures 2 and 3; later work with 3,000 runs found that
success is limited to such ranges). The best of several rates alone would not show that, so the page plots accuracy
against the rate and against the state.
Command: attnlab run experiments/recall.py
Minutes on two cores: 77, computed from step times, while another training ran (AMD EPYC); Taylor of width 64 alone 11.
To be measured again: the numbers of delta, gated-delta and gated-linear. They were measured before these used the
scales of their authors' code.
Expected: accuracy of multi-query recall after 1,000 steps, each variant at its best of four learning rates, 3 seeds.
Softmax reaches 100% at both widths. At width 64, by seed: delta .139, .999, .999, gated-delta .143, 1, .99, Taylor .97,
.15, .93, gated-linear .28, .44, .93; elu+1 reaches 16% (3-23). At width 32 all but softmax reach 14 or 15%. Answering
with the most frequent value of the sequence is right in 15%. So each seed has either learned the task or not, and with
three seeds no variant differs significantly from softmax: if the seeds of a variant form two clusters, a claim of a
difference as large takes five or more pairs that agree.
On validation, softmax of width 64 learns the task at .001, .003 and .01, softmax of width 32 at .01 and, in two seeds,
at .003. The others learn it at .003 alone, except gated-delta (one seed at .001, one at .01). Bytes of decoding state:
softmax 25 and 50 thousand, delta and gates 8 and 33, Taylor 72 and 142. "The same" means a difference of less than two
points. These mechanisms lack a short convolution before them, with which delta rules and gates are published: see
experiments/short_convolution.py.

The model has two layers of attention alone with one head, as in Zoology's small form. Three things differ. There are 16
pairs of 32 keys and 32 values, and all questions follow after the pairs (there: 256 symbols, and 4 pairs among 64
positions, with most questions soon after their pair). Sequences are drawn anew for every step (there: 10,000 sequences,
repeated). The widths are smaller (there: 128). The small form itself takes softmax more steps than are possible here:
after 1,000 it reached 25.7%, which is the accuracy of naming one of the four values. Taylor gets the first 16
components of queries and keys.
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
    # Each is compared with softmax of the same width.
    against={f"{name}-64": "softmax-64" for name in ("elu", "taylor", "gated-linear", "delta", "gated-delta")},
    question="Which mechanisms recall the value of a key, at which learning rates, with how much memory?",
    margin=0.02,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
    bands={"softmax-32": (0.95, None), "softmax-64": (0.95, None)},
)
