"""Norms: is post-norm simply better, as is often said, and does RMSNorm lose anything?

Claim: it is asked, not known at this size. Pre-norm trains at larger rates without warm-up (Xiong et al. 2020); with
warm-up and a rate chosen for each, two layers may not tell them apart. RMSNorm removes no mean, and is said to cost no
quality (Zhang and Sennrich 2019).
Command: attnlab run experiments/norms.py --workers 2
Minutes on two cores: 31 by the clocks of its variants, two side by side; stopped and resumed once, with jax's
compilation cache (2.8 GHz Xeon).
Expected: exact match on the test dates, 5 seeds, each variant at the better of two rates: post-norm 99.2% (98.9-99.4)
with LayerNorm and 99.1 (98.7-99.5) with RMSNorm, pre-norm 99.1 (98.7-99.5) and 99.3 (98.8-99.8): all the same as what
they are compared with, that is a difference of less than one point. So post-norm is not better here, and RMSNorm loses
nothing. That is of two layers and a rate of 3e-3, three times the other one; what it takes to train twenty layers is
not asked.

To be measured again: all numbers, which were measured before sources ended with an end mark and before batches of all
lengths alternated.
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
    question="Is post-norm simply better, as is often said, and does RMSNorm lose anything?",
    margin=0.01,
    against={"post-rms": "pre-rms"},
    quick={"task.buckets": 1, "train.steps": 32, "train.warmup": 8, "train.seeds": 2, "train.learning_rate": 3e-3},
)
