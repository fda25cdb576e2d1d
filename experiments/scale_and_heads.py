"""Scale and heads: what does the division of scores by √K bring, for keys of different widths?

Claim: unscaled scores of keys of width K have a variance of K at the start and saturate softmax. The wider the head,
the more accuracy is lost without the division (Vaswani et al. 2017, section 3.2.1). With 16 heads of width 4 the loss
of accuracy is smallest, with one head of width 64 largest.
Command: attnlab run experiments/scale_and_heads.py --workers 2
Minutes on two cores: 44, while other programs ran, with jax's compilation cache (2.8 GHz Xeon).
Expected: exact match on the test dates, 5 seeds, scaled and unscaled: one head 99.2% (98.7-99.7) and 39.6 (12.6-66.5),
worse; four heads 99.0 (98.3-99.6) and 95.4 (93.8-97.0), worse; 16 heads 97.5 (97.0-98.1) and 97.3 (96.7-98.0), the
same, which means a difference of less than one point. With scaled scores four heads are the same as one, and 16 are
worse. `attnlab inspect` shows the variance of the scores.

To be measured again: all numbers. They were measured before sources ended with an end mark and before batches of
different lengths alternated.
"""

from attnlab.lab.study import Experiment, Study, over, product
from attnlab.mechanisms import Softmax
from attnlab.models import Transformer
from attnlab.ops.score import dot, scaled_dot
from attnlab.tasks.synthetic.dates import Dates
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Dates(),
        model=Transformer(width=64, heads=4, layers=2, feedforward=128),
        train=Train(steps=1500, batch_size=64, learning_rate=3e-3, warmup=100, seeds=5, save_every=500),
    ),
    product(
        over("model.mechanism", scaled=Softmax(score=scaled_dot), unscaled=Softmax(score=dot)),
        over("model.heads", **{"1": 1, "4": 4, "16": 16}),
    ),
    question="What does the division of scores by √K bring, for keys of different widths?",
    margin=0.01,
    against={f"unscaled-{heads}": f"scaled-{heads}" for heads in (1, 4, 16)},
    quick={"task.buckets": 1, "train.steps": 32, "train.warmup": 8, "train.seeds": 2},
)
