"""A study so small that tests train it: reversing sequences of five symbols."""

from attnlab.lab.study.study import Experiment
from attnlab.models import Transformer
from attnlab.tasks.synthetic.reverse import Reverse
from attnlab.training.config import Train

TASK = Reverse(train_examples=64, valid_examples=8, test_examples=8, symbols=5, train_longest=6, longest=6, buckets=1)
MODEL = Transformer(width=8, heads=2, layers=1)
TRAIN = Train(steps=12, batch_size=4, warmup=2, seeds=2, evaluate_every=6, save_every=6)
EXPERIMENT = Experiment(TASK, MODEL, TRAIN)
