"""Reverse: can softmax and linear attention reverse a sequence of integers?

Claim: after 1,500 steps both reverse short sequences, and neither reverses one that is longer than those in training.
Linear attention is worse. This is a quick look at learning in progress; no model is trained to the end.
Command: attnlab run experiments/reverse.py
Minutes on two cores: 13, on one of them while other programs ran.
Expected: exact match on the test sequences: softmax 81.0% (95% interval 78.5-83.5, 2 seeds), linear 55.8% (44.4-67.2),
which is worse (jax 0.12.0.1). By length, softmax and linear: up to 10 symbols 100 and 99.9%, 11 to 15 100 and 87%, 16
to 20 99 and 36%, 21 to 25 80 and 3%, 26 to 30 none. Before sources had an end mark and before batches of different
lengths alternated: 54.4% (30.3-78.5) and 37.0% (28.1-45.9), an unclear difference.

Sequences of integers 0-49 are trained on lengths 1-25 and tested on lengths 1-30, as in the JoeyNMT tutorial (Kreutzer
et al. 2019), whose recurrent model reaches a test BLEU of 95.19. This model is a Transformer, and its metric is exact
match, which is stricter. So the two numbers are not comparable.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.mechanisms import Linear, Softmax
from attnlab.models import Transformer
from attnlab.tasks.synthetic.reverse import Reverse
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Reverse(),
        model=Transformer(width=64, heads=4, layers=2),
        train=Train(
            steps=1500,
            batch_size=64,
            learning_rate=2e-3,
            warmup=100,
            seeds=2,
            evaluate_every=250,
            save_every=500,
        ),
    ),
    over("model.mechanism", softmax=Softmax(), linear=Linear()),
    question="Can softmax and linear attention reverse a sequence of integers?",
    quick={"task.buckets": 1, "train.steps": 64, "train.warmup": 16, "train.seeds": 1},
)
