"""BERT on SST-2: does masked-word pretraining improve sentiment classification, at an equal total number of steps?

Claim: a small encoder trained from scratch on whole sentences alone, without their phrases, classifies about four in
five correctly. The study asks what it brings to spend half of the steps on predicting masked words of the same reviews.
Command: ATTNLAB_DATA=... attnlab run experiments/bert_sst2.py
Minutes on two cores: 27, while other programs ran, with jax's compilation cache (2.8 GHz Xeon).
Expected: accuracy on the 1,821 test sentences, 3 seeds at the better of two learning rates: from scratch 77.4% [75.2,
79.0], after predicting masked words 75.7% [75.2, 76.1]. The difference, −1.7 points [−3.7, 0.2], is unclear. Published
from scratch: .827 (Kim 2014, CNN-rand, quoted from memory). That model was also trained on the phrases of the
sentences, ten times as many examples. "The same" means a difference of less than 2 points.

15% of the words are masked (80/10/10), different ones each time (Devlin et al. 2019, 3.1). Words that occur once are
unknown. The learning rate stays constant after the warm-up, because a falling rate would leave little of it to the
second phase. Adam forgets the squared gradients of the first phase within a hundred steps.
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
    question="Does masked-word pretraining improve sentiment classification, at an equal total number of steps?",
    margin=0.02,
    # The same for all variants, so that a preview runs both phases.
    quick={
        "task.masked": 16, "task.buckets": 1, "train.steps": 32, "train.warmup": 4, "train.seeds": 2,
        "train.batch_size": 16, "train.learning_rate": 1e-3,
    },
    published={"scratch": 0.827},
)  # fmt: skip
