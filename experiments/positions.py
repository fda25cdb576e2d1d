"""Positions: which one still holds on sequences longer than those it was taught on?

Claim: trained on sequences of up to 20 symbols, every position but none learns to copy and to reverse them; on
sequences of 21 to 40 those that count from the beginning fail at once.
Command: attnlab run experiments/positions.py
Minutes on two cores: not yet measured.
Expected: exact match up to 20 and beyond ("exact_match.1-20", "exact_match.21+"); not yet measured.

On small algorithmic tasks beyond the length trained on, no position at all did best, then T5's (Kazemnejad et al.
2023).
"""

from typing import Any

from attnlab.lab.study import Experiment, Study, Variation, over, product
from attnlab.models import Transformer
from attnlab.modules.position import POSITIONS
from attnlab.tasks.reverse import Copy, Reverse
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
    question="Which position still holds on sequences longer than those it was taught on?",
    quick={"train.steps": 16, "train.warmup": 4, "train.seeds": 1},
)
