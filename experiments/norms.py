"""Norms: is post-norm better than pre-norm, and is RMSNorm worse than LayerNorm?

Claim: none at this size; the study asks. Post-norm is often said to be better. Pre-norm trains at larger learning rates
without warm-up (Xiong et al. 2020). With warm-up and a learning rate chosen for each, two layers may show no
difference. RMSNorm does not subtract the mean, and is said to cost no quality (Zhang and Sennrich 2019).
Command: attnlab run experiments/norms.py --workers 2
Minutes on two cores: not measured; the records sum to 56 minutes of one core, while other programs ran.
Expected: exact match on the test dates, 5 seeds (jax 0.12.0.1), each variant at the better of two learning rates:
post-norm 99.44% (99.36-99.52) with LayerNorm and 99.55 (99.34-99.76) with RMSNorm, pre-norm 99.44 (99.25-99.63) and
99.42 (99.01-99.83). Each is the same as the variant it is compared with, which means a difference of less than one
point. So post-norm is not better here, and RMSNorm loses nothing. This holds for two layers and a learning rate of
3e-3, three times the other rate. The study does not ask what twenty layers need. Before sources ended with an end mark
and before batches of different lengths alternated, the four had 99.1 to 99.3%.
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
