"""Activations: does the activation of the feed-forward layers matter, at equal parameters?

Claim: none; the study asks. Shazeer 2020 (table 1, on a model of 220 million) reports GLU variants a little better at
equal parameters. The exact and tanh forms of GELU are the same.
Command: attnlab run experiments/activations.py --workers 2
Minutes on two cores: 50, on one of them while other programs ran.
Expected: exact match on the test dates, 5 seeds (jax 0.12.0.1): GELU 99.58% (99.33-99.83), GELU's tanh form 99.55
(99.36-99.74), SiLU 99.50 (99.18-99.82), SwiGLU 99.47 (99.29-99.65), ReLU 99.40 (99.09-99.71). All are the same as ReLU,
which means a difference of less than one point. SwiGLU has a third matrix; its feed-forward width is chosen so that the
parameters agree. Before sources had an end mark and before batches of different lengths alternated, all five had 99.0
to 99.1%.
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
