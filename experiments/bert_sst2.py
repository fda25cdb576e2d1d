"""BERT on SST-2: do hidden words that were filled in first help to tell praise from blame, in as many steps in all?

Claim: sentences alone, without the phrases in them, carry a small encoder that starts from nothing to about four in
five; it is asked what half of its steps, spent on filling in words of the same reviews, are worth.
Command: ATTNLAB_DATA=... attnlab run experiments/bert_sst2.py
Minutes on two cores: 27, beside other work, with jax's compilation cache (2.8 GHz Xeon).
Expected: accuracy on the 1,821 test sentences, 3 seeds at the better of two rates: from scratch 77.4% [75.2, 79.0],
with hidden words first 75.7% [75.2, 76.1]; the difference, −1.7 points [−3.7, 0.2], is unclear. Published from scratch
.827 (Kim 2014, CNN-rand, quoted from memory), which was trained on the phrases of the sentences besides, ten times as
many examples. The same is a difference of less than 2 points.

15% of the words are hidden, 80/10/10, other ones each time (Devlin et al. 2019, 3.1); words that occur once are
unknown. The learning rate stays where it is after its warm-up: one that falls would leave little of it to the second
phase; and Adam forgets the squares of the first phase's gradients within a hundred steps.
"""

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.models.bert import Bert
from attnlab.tasks.text.sentences import Sst2
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Sst2(),
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
        }
    ),
    question="Do hidden words that were filled in first help to tell praise from blame, in as many steps in all?",
    margin=0.02,
    # All variants alike, so that a preview sees both phases.
    quick={
        "task.masked": 16, "task.buckets": 1, "train.steps": 32, "train.warmup": 4, "train.seeds": 2,
        "train.batch_size": 16, "train.learning_rate": 1e-3,
    },
    published={"scratch": 0.827},
)  # fmt: skip
