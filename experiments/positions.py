"""Positions: which position encodings work on sequences longer than the training sequences?

Claim: none does. Up to the training length of 20 symbols every encoding learns to copy and to reverse, a bias on the
scores by distance more slowly than the others (ALiBi, and T5's most of all). A model without positions does not. On 21
to 40 symbols all fail; Shaw's still reverse one in nine.
Command: attnlab run experiments/positions.py
Minutes on two cores: not measured; the records sum to 185 minutes of one core, while other programs ran, pauses
included (jax 0.12.0.1).
Expected: exact match up to 20 symbols and beyond ("exact_match.1-20", "exact_match.21+"), 3 seeds, in percent. Copies:
learned 100 and .1, sinusoidal 100 and 2.4, FLOATER 99.9 and 6.3, xPos 98.9 and 7.1, rotary 98.6 and 6.8, Shaw 97.9 and
7.3, ALiBi 95.1 and 3.7, T5 82.5 and .1, none 7.4 and 0. Reversals: FLOATER 99.9 and 8.3, sinusoidal 99.7 and .4, xPos
99.3 and 3.4, rotary 99.2 and 3.6, Shaw 97.9 and 11.1, learned 97.7 and 0, ALiBi 92.4 and 2.0, T5 75.1 and 0, none 7.4
and 0.

A claim has turned. Without an end mark on sources, and with batches of one length eight times in a row, ALiBi copied
and reversed only 14% and T5's positions 39 and 29%, xPos and rotary 89 to 90%. FLOATER's vectors were also added to
the input of the network; now each attention adds them to its own input.

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
