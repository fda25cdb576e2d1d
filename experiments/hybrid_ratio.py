"""Hybrids: how many layers of softmax does a stack of gated-delta layers need for recall, and where?

Claim: published hybrids have one softmax layer in four, the last of each period (Qwen3-Next, Kimi Linear), or one in
eight, in the middle (Jamba, which mixes it with Mamba). It is asked whether so few suffice for recall, and whether the
place in the period matters.
Command: attnlab run experiments/hybrid_ratio.py
         attnlab run experiments/hybrid_ratio.py task=shakespeare task.length=64 --out runs/text
         attnlab run experiments/hybrid_ratio.py model.width=64 --out runs/wide
Minutes on two cores: not measured; the records sum to 75 minutes of one core while other programs ran, those of the
text to 66 (Intel Xeon, jax 0.12.0.1).
Expected: accuracy after 1,000 steps, 6 seeds: 1 in 8 in the middle or last 100.00%, 1 in 4 at any place 99.87 to 100%,
and 1 in 2 last 100.00%; all of them are better than none. Gated-delta in every layer reaches 24.8% (3.9-45.6): four
seeds stay at 14%, the best has 63%. One softmax layer in eight as the first has 14.1% (14.0-14.1): no layer before it
looks one token back. Its verdict is unclear, as are those of 1 in 2 first (85.6%, one seed of six fails) and all
(33.6%, 0.3-66.8). Naming the most frequent value is right in 15%.
On text, nats per character, 3 seeds (`train.seeds=3`): none 2.05 (2.02-2.09), 1 in 8 2.05 to 2.07, 1 in 4 2.08, 1 in 2
last 2.11, which is worse, and first 2.12, all 2.17 (2.14-2.21). All others are unclear. Softmax has no positions here.

Multi-query recall of 16 pairs of 32 keys and 32 values, as in experiments/recall.py, with eight layers of width 32.
The name of a variant gives the ratio of softmax layers, none, 1 in 8, 1 in 4, 1 in 2 or all, and the place of the
softmax layer in its period. A period of two has no middle. Each pattern is a value of `model.mechanism`, for example
`gated-delta*3+softmax` on the command line. All are compared with gated-delta in every layer. The same is a difference
of less than two points.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.mechanisms import MECHANISMS, Mechanism
from attnlab.models import Language
from attnlab.pattern import Pattern
from attnlab.tasks.synthetic.recall import Recall
from attnlab.training.config import Train

SOFTMAX, LINEAR = MECHANISMS["softmax"], MECHANISMS["gated-delta"]


def pattern(period: int, place: int) -> Pattern:
    """Returns gated-delta layers of which one in `period`, that at `place` from 0, is softmax."""
    return Pattern(tuple(SOFTMAX if n == place else LINEAR for n in range(period)))


PATTERNS: dict[str, Mechanism | Pattern] = {
    "none": LINEAR,
    **{f"1-in-8-{name}": pattern(8, place) for name, place in {"first": 0, "middle": 4, "last": 7}.items()},
    **{f"1-in-4-{name}": pattern(4, place) for name, place in {"first": 0, "middle": 2, "last": 3}.items()},
    **{f"1-in-2-{name}": pattern(2, place) for name, place in {"first": 0, "last": 1}.items()},
    "all": SOFTMAX,
}

study = Study(
    Experiment(
        task=Recall(vocabulary=64, pairs=16, queries=16),
        model=Language(width=32, heads=1, layers=8, feedforward=0),
        train=Train(
            steps=1000,
            batch_size=32,
            learning_rate=3e-3,
            warmup=100,
            seeds=6,
            evaluate_every=250,
            save_every=500,
        ),
    ),
    over("model.mechanism", **PATTERNS),
    question="How many layers of softmax does a stack of gated-delta layers need for recall, and where?",
    match="parameters",
    margin=0.02,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2},
)
