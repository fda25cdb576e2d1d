"""Buckets: does the number of lengths into which batches are sorted change the result?

Claim: no. With 1, 2, 4 and 10 buckets a GRU and a Transformer learn equally well within their intervals.
Command: ATTNLAB_DATA=... attnlab run experiments/buckets.py --out runs/hun --workers 2
         attnlab run experiments/buckets.py task=dates --out runs/dates --workers 2
Minutes on two cores: not measured. With 1, 2, 4 and 10 buckets a step of Hungarian takes .17, .10, .08 and .08 s for
the Transformer and .15, .09, .05 and .07 s for the GRU, on one core while other programs ran.
Expected: word error on the Hungarian test words, five seeds, mean and 95% interval, with 1, 2, 4 and 10 buckets:
Transformer 19.1% (16.7-21.5), 19.1 (15.5-22.7), 19.9 (16.7-23.1), 19.2 (16.9-21.5); GRU 10.3 (8.8-11.7), 10.0
(9.5-10.6), 11.2 (10.6-11.8), 11.2 (10.4-12.0). No difference from one bucket is significant. Of dates, with 1, 2, 4 and
10 buckets, the Transformer answers 97.8% exactly (97.3-98.3), 98.4 (97.7-99.1), 98.5 (98.0-99.1) and 98.4 (97.4-99.5),
the GRU 100.0, 99.99, 99.99 and 100.0. One of these six differences from one bucket is significant: the Transformer is
better with 4 buckets by .7 points (.06 to 1.4, a joint interval). The claim holds otherwise.

A bucket holds examples of similar length, so that a batch has little padding. All examples of one batch are then of
similar length, but the length changes from one step to the next. With one bucket every batch mixes all lengths. The
number of buckets should decide how long a step takes and nothing else.
"""

from attnlab.lab.study import Experiment, Study, Variation, over, product
from attnlab.models import Transformer
from attnlab.models.seq2seq import Seq2Seq
from attnlab.modules.position import POSITIONS
from attnlab.tasks.text.g2p import Sigmorphon
from attnlab.training.config import Train

MODELS = {
    "transformer": Transformer(width=64, heads=4, layers=2, feedforward=128, dropout=0.1, position=POSITIONS["rotary"]),
    "gru": Seq2Seq(width=64, cell="gru", bidirectional=True, attention="bahdanau", dropout=0.1),
}
BUCKETS = (1, 2, 4, 10)

study = Study(
    Experiment(
        task=Sigmorphon(),
        model=MODELS["transformer"],
        train=Train(
            steps=1500,
            batch_size=32,
            learning_rate=2e-3,
            warmup=150,
            seeds=5,
            evaluate_every=500,
            save_every=500,
        ),
    ),
    product(
        Variation({name: {"model": model} for name, model in MODELS.items()}),
        over("task.buckets", **{str(count): count for count in BUCKETS}),
    ),
    question="Does the number of lengths into which batches are sorted change the result?",
    against={f"{model}-{count}": f"{model}-1" for model in MODELS for count in BUCKETS[1:]},
    quick={"train.steps": 16, "train.warmup": 4, "train.seeds": 1},
)
