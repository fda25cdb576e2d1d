"""A study that is small enough for tests to train: reversing sequences of five symbols."""

from attnlab.lab.study.study import Experiment
from attnlab.models import AssociativeMemory, Transformer
from attnlab.tasks.synthetic.associations import Associations
from attnlab.tasks.synthetic.reverse import Reverse
from attnlab.training.config import Train

TASK = Reverse(train_examples=64, valid_examples=8, test_examples=8, symbols=5, train_longest=6, longest=6, buckets=1)
MODEL = Transformer(width=8, heads=2, layers=1)
TRAIN = Train(steps=12, batch_size=4, warmup=2, seeds=2, evaluate_every=6, save_every=6)
EXPERIMENT = Experiment(TASK, MODEL, TRAIN)
# Overrides of the study that compile quickly, with a checkpoint every 8 steps.
TINY = {
    "task": Associations(keys=4, examined=20),
    "model": AssociativeMemory(width=8),
    "train.steps": 24,
    "train.save_every": 8,
}
