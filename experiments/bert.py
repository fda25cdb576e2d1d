"""BERT on TREC: do hidden words that were filled in first help to sort questions, for as many steps in all?

Claim: a small encoder that starts from nothing sorts at least 84% of the test questions rightly; it is asked what half
of its steps, spent on filling in words of the same questions or of film reviews besides, are worth.
Command: ATTNLAB_DATA=... attnlab run experiments/bert.py
Minutes on two cores: 35, on one of them beside other work.
Expected: accuracy on the 500 test questions, 3 seeds, each variant at the better of two rates: from nothing 89.5%
[88.4, 90.2], after filling in words of the questions 88.7% [85.8, 90.7], of reviews besides 88.9% [86.8, 90.3]. These
seeds do not tell them apart: as many steps of sorting are worth as much. The same is a difference of less than 2
points, which are ten questions. Published from scratch .912 (Kim 2014, CNN-rand, quoted from memory: a convolution, as
random at the start, of 300-dimensional word vectors).

15% of the words are hidden, 80/10/10, other ones each time (Devlin et al. 2019, 3.1); words that occur once are
unknown; 4,907 questions to train with, and 6,920 sentences of SST-2 where there are reviews. The learning rate stays
where it is after its warm-up: one that falls would leave little of it to the second phase; and Adam forgets the squares
of the first phase's gradients within a hundred steps. The variant with reviews knows the words of both, and has a table
of vectors three times as large; the others' parameters are alike.
"""

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.models.bert import Bert
from attnlab.tasks.text.sentences import Trec
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Trec(),
        model=Bert(width=64, heads=4, layers=2, pool="mean", dropout=0.3),
        train=Train(
            steps=2000,
            batch_size=64,
            learning_rate=(1e-3, 3e-3),
            schedule="constant",
            warmup=100,
            beta2=0.98,
            seeds=3,
            evaluate_every=250,
            save_every=500,
        ),
    ),
    Variation(
        {
            "scratch": {"task.masked": 0},
            "masked": {"task.masked": 1000},
            "masked-reviews": {"task.masked": 1000, "task.unlabelled": "sst2"},
        }
    ),
    question="Do hidden words that were filled in first help to sort questions, for as many steps in all?",
    margin=0.02,
    # All variants alike, so that a preview sees both phases.
    quick={
        "task.masked": 16, "task.buckets": 1, "train.steps": 32, "train.warmup": 4, "train.seeds": 2,
        "train.batch_size": 16, "train.learning_rate": 1e-3,
    },
    published={"scratch": 0.912},
    bands={"scratch": (0.84, None)},
)  # fmt: skip
