"""Scale and heads: what does the division by √K save, for keys of different widths?

Claim: unscaled scores of keys of width K have a variance of K at the start, and saturate softmax: the wider the head,
the more it costs to leave the division out (Vaswani et al. 2017, section 3.2.1). With 16 heads of width 4 it costs
least, with one of width 64 most.
Command: attnlab run experiments/scale_and_heads.py --workers 2
Minutes on two cores: 44, beside other work, with jax's compilation cache (2.8 GHz Xeon).
Expected: exact match on the test dates, 5 seeds, scaled and unscaled: one head 99.2% (98.7-99.7) and 39.6 (12.6-66.5),
worse; four 99.0 (98.3-99.6) and 95.4 (93.8-97.0), worse; 16 97.5 (97.0-98.1) and 97.3 (96.7-98.0), the same, that is a
difference of less than one point. Scaled, four heads are the same as one, and 16 worse. `attnlab inspect` shows the
variance of the scores.

To be measured again: all numbers, which were measured before sources ended with an end mark and before batches of all
lengths alternated.
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
    question="What does the division by √K save, for keys of different widths?",
    margin=0.01,
    against={f"unscaled-{heads}": f"scaled-{heads}" for heads in (1, 4, 16)},
    quick={"task.buckets": 1, "train.steps": 32, "train.warmup": 8, "train.seeds": 2},
)
