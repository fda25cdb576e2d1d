"""SCAN: does a Transformer that knows every command it was shown also understand new ones?

Claim: of commands like those shown it understands at least 99 in 100; of longer ones few; of a verb shown by itself
alone next to none.
Command: ATTNLAB_DATA=... attnlab run experiments/scan.py
Minutes on two cores: not yet measured.
Expected: exact match simple ≥ .99; published (recurrent, Lake and Baroni 2018): simple .998, length .138 to .208, jump
.001 to .012, quoted from memory.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.models import Transformer
from attnlab.tasks.scan import Scan
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Scan(),
        model=Transformer(width=64, heads=4, layers=2, feedforward=128, dropout=0.1),
        train=Train(
            steps=4000,
            batch_size=64,
            learning_rate=1e-3,
            warmup=200,
            seeds=3,
            evaluate_every=500,
            save_every=1000,
        ),
    ),
    over("task.split", simple="simple", length="length", jump="addprim_jump"),
    question="Does a Transformer that knows every command it was shown also understand new ones?",
    quick={"task.buckets": 1, "train.steps": 16, "train.warmup": 4, "train.seeds": 1},
    published={"simple": 0.998, "length": 0.138, "jump": 0.012},
    bands={"simple": (0.99, None)},
)
