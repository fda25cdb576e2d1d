"""Heads and width: Vaswani's Table 3 at our size: how many heads, how wide a key, which positions, how much dropout?

Claim: at equal width four or eight heads are as good as any and one head is worse; learned and sinusoidal positions
are the same; no dropout is worse. (Published, dev BLEU: heads 1/4/8/16/32: 24.9 25.5 25.8 25.8 25.4; key width 16:
25.1, 32: 25.4; learned 25.7 against sinusoidal 25.8; dropout 0: 24.6 against .1: 25.8. Vaswani et al. 2017, Table 3.)
Command: ATTNLAB_DATA=... attnlab run experiments/heads_and_width.py
Minutes on two cores: not yet measured.
Expected: word error on the Hungarian test words of `sigmorphon`; not yet measured. The same is a difference of less
than two points, about 9 of the 450 test words.
"""

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.models import Transformer
from attnlab.modules.position import POSITIONS
from attnlab.tasks.g2p import Sigmorphon
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Sigmorphon(smoothing=0.1),
        model=Transformer(width=64, heads=4, layers=2, feedforward=256, dropout=0.1),
        train=Train(steps=1000, batch_size=128, learning_rate=2e-3, warmup=100, seeds=5),
    ),
    Variation(
        {
            "base": {},
            "heads-1": {"model.heads": 1},
            "heads-2": {"model.heads": 2},
            "heads-8": {"model.heads": 8},
            "heads-16": {"model.heads": 16},
            "width-32": {"model.width": 32, "model.feedforward": 128},
            "width-128": {"model.width": 128, "model.feedforward": 512},
            "layers-1": {"model.layers": 1},
            "layers-4": {"model.layers": 4},
            "learned-positions": {"model.position": POSITIONS["learned"]},
            "dropout-0": {"model.dropout": 0.0},
            "dropout-0.3": {"model.dropout": 0.3},
            "no-smoothing": {"task.smoothing": 0.0},
        }
    ),
    question="What do heads, width, depth, positions and dropout change, at our size?",
    margin=0.02,
    quick={"task.buckets": 1, "train.steps": 16, "train.warmup": 4, "train.seeds": 1},
)
