"""BERT on TREC: does masked-word pretraining improve question classification, at an equal total number of steps?

Claim: a small encoder trained from scratch classifies at least 84% of the test questions correctly. The study asks what
it brings to spend half of the steps on predicting masked words, of the same questions or also of film reviews.
Command: ATTNLAB_DATA=... attnlab run experiments/bert.py
Minutes on two cores: 35, on one of them while other programs ran.
Expected: accuracy on the 500 test questions, 3 seeds, each variant at the better of two learning rates: from scratch
89.5% [88.4, 90.2], after predicting masked words of the questions 88.7% [85.8, 90.7], also of reviews 88.9% [86.8,
90.3]. With these seeds the variants do not differ significantly: the same number of classification steps is worth as
much. "The same" means a difference of less than 2 points, which is ten questions. Published from scratch: .912 (Kim
2014, CNN-rand, quoted from memory; a convolution over 300-dimensional word vectors, which are also random at the
start).

15% of the words are masked (80/10/10), different ones each time (Devlin et al. 2019, 3.1). Words that occur once are
unknown. There are 4,907 training questions, and 6,920 sentences of SST-2 for the variant with reviews. The learning
rate stays constant after the warm-up, because a falling rate would leave little of it to the second phase. Adam forgets
the squared gradients of the first phase within a hundred steps. The variant with reviews has the vocabulary of both
data sets, so its embedding table is three times as large. The other variants have the same parameters.
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
    question="Does masked-word pretraining improve question classification, at an equal total number of steps?",
    margin=0.02,
    # The same for all variants, so that a preview runs both phases.
    quick={
        "task.masked": 16, "task.buckets": 1, "train.steps": 32, "train.warmup": 4, "train.seeds": 2,
        "train.batch_size": 16, "train.learning_rate": 1e-3,
    },
    published={"scratch": 0.912},
    bands={"scratch": (0.84, None)},
)  # fmt: skip
