"""Activations: does the activation of the feed-forward layers matter, at equal parameters?

Claim: none; the study asks. Shazeer 2020 (table 1, on a model of 220 million) reports GLU variants a little better at
equal parameters. The exact and tanh forms of GELU are the same.
Command: attnlab run experiments/activations.py --workers 2
Minutes on two cores: 30, for a few of them while other programs ran, with jax's compilation cache (2.8 GHz Xeon).
Expected: exact match on the test dates, 5 seeds: GELU 99.1% (98.7-99.5), SiLU 99.1 (98.5-99.7), GELU's tanh form 99.0
(98.5-99.6), SwiGLU 99.0 (98.9-99.2), ReLU 99.0 (98.3-99.6). All are the same as ReLU, which means a difference of less
than one point. SwiGLU has a third matrix; its feed-forward width is chosen so that the parameters agree.

To be measured again: all numbers. They were measured before sources ended with an end mark and before batches of
different lengths alternated.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.models import Transformer
from attnlab.tasks.synthetic.dates import Dates
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Dates(),
        model=Transformer(width=64, heads=4, layers=2, feedforward=128),
        train=Train(steps=1500, batch_size=64, learning_rate=3e-3, warmup=100, seeds=5, save_every=500),
    ),
    over("model.activation", relu="relu", gelu="gelu", gelu_tanh="gelu_tanh", silu="silu", swiglu="swiglu"),
    question="Does the activation of the feed-forward layers matter, at equal parameters?",
    match="parameters",
    margin=0.01,
    quick={"task.buckets": 1, "train.steps": 32, "train.warmup": 8, "train.seeds": 2},
)
