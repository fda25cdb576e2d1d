"""Positions: which position encodings work on sequences longer than the training sequences?

Claim: none does. Up to the training length of 20 symbols, positions that change vectors or keys learn to copy and to
reverse (learned, sinusoidal, FLOATER, Shaw's, rotary and xPos). A model without positions does not, and a bias on the
scores by distance (T5's, ALiBi) hardly does in 2,000 steps. On 21 to 40 symbols all fail; Shaw's still reverse one in
six.
Command: attnlab run experiments/positions.py --workers 2
Minutes on two cores: 85, while other programs ran (2.8 GHz Xeon), with jax's compilation cache.
Expected: exact match of copies up to 20 symbols and beyond ("exact_match.1-20", "exact_match.21+"), 3 seeds: learned 1
and 0, FLOATER 1 and .05, sinusoidal 1 and .02, Shaw .93 and .06, xPos .90 and .07, rotary .89 and .06, T5 .39 and 0,
ALiBi .14 and 0, none .06 and 0. Exact match of reversals: FLOATER 1 and .06, Shaw .97 and .16, sinusoidal .94 and 0,
learned .92 and 0, xPos .89 and .06, rotary .89 and .05, T5 .29 and 0, ALiBi .14 and 0, none .06 and 0.

To be measured again: all numbers. They were measured before sources ended with an end mark and before batches of
different lengths alternated.

Published: on small algorithmic tasks beyond the training length, models without positions did best, then T5's positions
(Kazemnejad et al. 2023).
"""

from typing import Any

from attnlab.lab.study import Experiment, Study, Variation, over, product
from attnlab.models import Transformer
from attnlab.modules.position import POSITIONS
from attnlab.tasks.synthetic.reverse import Copy, Reverse
from attnlab.training.config import Train

SIZES: dict[str, Any] = {"symbols": 20, "train_longest": 20, "longest": 40, "buckets": 2}
LINES = {name: position for name, position in POSITIONS.items() if not name.endswith("-2d")}

study = Study(
    Experiment(
        task=Reverse(**SIZES),
        model=Transformer(width=64, heads=4, layers=2, feedforward=128),
        train=Train(steps=2000, batch_size=64, learning_rate=1e-3, warmup=200, seeds=3),
    ),
    product(
        Variation({"copy": {"task": Copy(**SIZES)}, "reverse": {"task": Reverse(**SIZES)}}),
        over("model.position", **LINES),
    ),
    question="Which position encodings work on sequences longer than the training sequences?",
    quick={"train.steps": 16, "train.warmup": 4, "train.seeds": 1},
)
