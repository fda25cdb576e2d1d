"""CMUdict: how well does a Transformer pronounce new English words, after an hour of training on two cores?

Claim: at most 38 in 100 of the test words are wrong.
Command: ATTNLAB_DATA=... attnlab run experiments/cmudict.py
Minutes on two cores: 118 on one of them while other programs ran, of which 101 are training with its validation and
checkpoints (.46 s per step; jax 0.12.0.1). After some 64, at step 7,000, the error on validation was 33.2% with greedy
decoding.
Expected: word error 30.6%, phoneme error 7.5%, one seed; the claim allows at most 38%. Before sources ended with an end
mark and before batches of different lengths alternated, they were 30.4 and 7.4%. Published, with the same split rule on
the dictionary of 2018-19: 33.89% (n-gram WFST) and 30.2% (Transformer, 3 layers of width 256). The older split, for
which 20 to 29 are published, is about ten points easier.

There are 39 phones without stress. A word with several pronunciations is trained with each of them, and any of them
counts as correct. The tested model is the mean of five checkpoints from the last tenth of the steps. It decodes with a
beam of five.
"""

from attnlab.decoding import Beam
from attnlab.lab.study import Experiment, Study
from attnlab.models import Transformer
from attnlab.tasks.text.g2p import CMUdict
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=CMUdict(smoothing=0.1),
        model=Transformer(width=160, heads=4, layers=3, feedforward=480, dropout=0.1),
        train=Train(
            steps=12_000,
            batch_size=128,
            learning_rate=1e-3,
            warmup=1000,
            seeds=1,
            evaluate_every=1000,
            save_every=500,
            average=5,
        ),
        decoder=Beam(size=5, penalty=1.0),
    ),
    question="How well does a Transformer pronounce new English words?",
    quick={"task.buckets": 1, "train.steps": 16, "train.average": 0, "train.warmup": 8, "train.batch_size": 16},
    published={"base": 0.302},
    bands={"base": (None, 0.38)},
)
