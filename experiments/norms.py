"""Norms: is post-norm simply better, as is often said, and does RMSNorm lose anything?

Claim: it is asked, not known at this size. Pre-norm trains at larger rates without warm-up (Xiong et al. 2020); with
warm-up and a rate chosen for each, two layers may not tell them apart. RMSNorm removes no mean, and is said to cost no
quality (Zhang and Sennrich 2019).
Command: attnlab run experiments/norms.py
Minutes on two cores: not yet measured.
Expected: exact match on the test dates, each variant at the better of two rates; not yet measured. The same is a
difference of less than one point.
"""

from attnlab.lab.study import Experiment, Study, over, product
from attnlab.models import Transformer
from attnlab.tasks.dates import Dates
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Dates(),
        model=Transformer(width=64, heads=4, layers=2, feedforward=128),
        train=Train(steps=1500, batch_size=64, learning_rate=(1e-3, 3e-3), warmup=100, seeds=5, save_every=500),
    ),
    product(
        over("model.norm_first", pre=True, post=False),
        over("model.norm", layer="layer", rms="rms"),
    ),
    question="Is post-norm simply better, as is often said, and does RMSNorm lose anything?",
    margin=0.01,
    against={"post-rms": "pre-rms"},
    quick={"task.buckets": 1, "train.steps": 32, "train.warmup": 8, "train.seeds": 2, "train.learning_rate": 3e-3},
)
