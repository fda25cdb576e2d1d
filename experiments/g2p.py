"""Grapheme to phoneme: how well does a small Transformer pronounce words it has never seen?

Claim: TODO
Command: ATTNLAB_DATA=... attnlab run experiments/g2p.py
         ATTNLAB_DATA=... attnlab run experiments/g2p.py task=cmudict train.seeds=1 train.steps=9000 --out runs/cmudict
Minutes on two cores: TODO
Expected: TODO
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.mechanisms import Softmax
from attnlab.models import Transformer
from attnlab.tasks.g2p import Sigmorphon
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Sigmorphon(language="hun"),
        model=Transformer(width=128, heads=4, layers=3, dropout=0.2),
        train=Train(
            steps=2400,
            batch_size=128,
            learning_rate=1e-3,
            warmup=300,
            seeds=3,
            evaluate_every=300,
            save_every=600,
        ),
    ),
    over("model.mechanism", softmax=Softmax()),
    question="How well does a small Transformer pronounce words it has never seen?",
    quick={"task.buckets": 1, "train.steps": 32, "train.warmup": 8, "train.seeds": 1},
)
