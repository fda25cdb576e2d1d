"""Scale and heads: what does the division of scores by √K bring, for keys of different widths?

Claim: unscaled scores of keys of width K have a variance of K at the start and saturate softmax. The wider the head,
the more accuracy is lost without the division (Vaswani et al. 2017, section 3.2.1). With 16 heads of width 4 the loss
of accuracy is smallest, with one head of width 64 largest.
Command: attnlab run experiments/scale_and_heads.py --workers 2
Minutes on two cores: not measured; the records sum to 53 minutes of one core, while other programs ran.
Expected: exact match on the test dates, 5 seeds (jax 0.12.0.1), scaled and unscaled: one head 99.5% (99.3-99.8) and
49.5 (27.3-71.7), worse; four heads 99.4 (99.1-99.7) and 96.6 (95.5-97.6), worse; 16 heads 98.9 (98.7-99.1) and 98.5
(98.1-98.8), the same, which means a difference of less than one point. With scaled scores four heads are the same as
one; 16 have .7 points less, which is unclear. `attnlab inspect` shows the variance of the scores. Before sources ended
with an end mark and before batches of different lengths alternated, scaled scores had 99.2, 99.0 and 97.5% with 1, 4
and 16 heads, and unscaled ones 39.6, 95.4 and 97.3. Then 16 heads were worse than one.
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
