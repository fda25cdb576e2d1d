"""Layers as published: which language model is best on the characters of Shakespeare, at equal parameters?

Claim: none; the study asks whether small models of published layers differ significantly with several seeds. Papers
compare their own layer with others at 340 million parameters or more, with one seed.
Command: ATTNLAB_DATA=... attnlab run experiments/published_layers.py
         attnlab run experiments/published_layers.py task=recall --out runs/recall
Minutes on two cores: not measured yet.
Expected: not measured yet.

Each variant is a model of `attnlab list models`; docs/attention-layers.md describes its layers. Widths are matched to
the parameters of Transformer++. Differences below .02 nats count as equal.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.models.published import PUBLISHED
from attnlab.tasks.text.text import Shakespeare
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Shakespeare(length=64),
        model=PUBLISHED["transformer++"],
        train=Train(
            steps=700,
            batch_size=32,
            learning_rate=(1e-3, 3e-3),
            warmup=100,
            seeds=3,
            evaluate_every=175,
            save_every=350,
        ),
    ),
    over("model", **PUBLISHED),
    question="Which published language model is best on the characters of Shakespeare, at equal parameters?",
    match="parameters",
    margin=0.02,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
)
