"""Heads and width: how many heads, how wide, which positions, how much dropout (Table 3 of Vaswani et al. 2017)?

Claim: width and dropout change the error most, and in so few steps dropout only does harm. One layer is worse than two,
and sixteen heads, with keys of width 4, are worse than four. Other predictions from the published table did not hold:
that one head is worse than four, that learned and sinusoidal positions are the same, and that no dropout is worse.
(Published, dev BLEU: heads 1/4/8/16/32: 24.9 25.5 25.8 25.8 25.4; key width 16: 25.1, 32: 25.4; learned 25.7 against
sinusoidal 25.8; dropout 0: 24.6 against .1: 25.8. Vaswani et al. 2017, Table 3: 100,000 steps of a base model.)
Command: ATTNLAB_DATA=... attnlab run experiments/heads_and_width.py --workers 2
Minutes on two cores: 76, for a few of them while other programs ran, with jax's compilation cache.
Expected: word error on the Hungarian test words of `sigmorphon`, 5 seeds: base 20.4% (19.6-21.2). Better: width 128
12.6 (11.2-13.9), no dropout 15.8 (14.3-17.3), learned positions 17.3 (16.6-18.0). Worse: 16 heads 24.6 (23.4-25.8), one
layer 27.1 (25.0-29.2), dropout .3 39.0 (37.3-40.7), width 32 39.7 (38.6-40.7). Unclear: 4 layers 18.5, no smoothing
19.1, 2 heads 21.7, one 21.7, 8 heads 22.0. No variant is shown to be the same. "The same" means a difference of less
than two points, about 9 of the 450 test words.

To be measured again: all numbers. They were measured before sources ended with an end mark and before batches of
different lengths alternated.
"""

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.models import Transformer
from attnlab.modules.position import POSITIONS
from attnlab.tasks.text.g2p import Sigmorphon
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
    question="How many heads, how wide, which positions, how much dropout, in a small Transformer?",
    margin=0.02,
    quick={"task.buckets": 1, "train.steps": 16, "train.warmup": 4, "train.seeds": 1},
)
