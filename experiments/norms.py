"""Norms: is post-norm better than pre-norm, and is RMSNorm worse than LayerNorm?

Claim: none at this size; the study asks. Post-norm is often said to be better. Pre-norm trains at larger learning rates
without warm-up (Xiong et al. 2020). With warm-up and a learning rate chosen for each, two layers may show no
difference. RMSNorm does not subtract the mean, and is said to cost no quality (Zhang and Sennrich 2019).
Command: attnlab run experiments/norms.py --workers 2
Minutes on two cores: 31, from the times of its variants, two at a time; stopped and resumed once, with jax's
compilation cache (2.8 GHz Xeon).
Expected: exact match on the test dates, 5 seeds, each variant at the better of two learning rates: post-norm 99.2%
(98.9-99.4) with LayerNorm and 99.1 (98.7-99.5) with RMSNorm, pre-norm 99.1 (98.7-99.5) and 99.3 (98.8-99.8). Each is
the same as the variant it is compared with, which means a difference of less than one point. So post-norm is not better
here, and RMSNorm loses nothing. This holds for two layers and a learning rate of 3e-3, three times the other rate. The
study does not ask what twenty layers need.

To be measured again: all numbers. They were measured before sources ended with an end mark and before batches of
different lengths alternated.
"""

from attnlab.lab.study import Experiment, Study, over, product
from attnlab.models import Transformer
from attnlab.tasks.synthetic.dates import Dates
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
    question="Is post-norm better than pre-norm, and is RMSNorm worse than LayerNorm?",
    margin=0.01,
    against={"post-rms": "pre-rms"},
    quick={"task.buckets": 1, "train.steps": 32, "train.warmup": 8, "train.seeds": 2, "train.learning_rate": 3e-3},
)
