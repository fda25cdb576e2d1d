"""SCAN: does a network that knows every training command also understand new ones?

Claim: the network understands at least 99 in 100 of the new commands that resemble the training commands. It
understands few longer commands, and almost none with a verb that training shows only by itself.
Command: ATTNLAB_DATA=... attnlab run experiments/scan.py --workers 2
         ATTNLAB_DATA=... attnlab run experiments/scan.py task.split=simple        (one of the splits)
Minutes on two cores: not measured; 69 on one core while another program ran (AMD EPYC, jax 0.12.0.1).
Expected: exact match, 3 seeds: a GRU with Bahdanau's attention 1 on simple in all three, .149 on length (.103 to .195),
.013 on jump (.006 to .020); a Transformer .9993 (.9975 to 1), .021 (0 to .057) and .0003 (0 to .001). On length and on
jump the Transformer is worse than the GRU, on simple the difference is unclear. Before sources ended with an end mark
and batches of different lengths alternated, the GRU had .9986, .155 and .007 and the Transformer .989, .087 and .0006,
and all differences were unclear. Neither change alone explains the Transformer's fall on length: it has .032 (0 to
.070) without the mark and .008 (0 to .028) with one bucket. Published, for recurrent networks (Lake and Baroni 2018,
quoted from memory): .998, .138 to .208, .001 to .012.

How the models were chosen: a Transformer with half the feed-forward width, sinusoidal positions, dropout of .1 and a
learning rate of 1e-3 reached .819 (.763 to .875, 3 seeds) on the test of the simple split. Several things were changed
at once after that. Both models of this study were tried with one seed on that split.
"""

from attnlab.lab.study import Experiment, Study, Variation, over, product
from attnlab.models import Transformer
from attnlab.models.seq2seq import Seq2Seq
from attnlab.modules.position import POSITIONS
from attnlab.tasks.text.scan import Scan
from attnlab.training.config import Train

MODELS = {
    "gru": Seq2Seq(width=128, cell="gru", bidirectional=True, attention="bahdanau", dropout=0.1),
    "transformer": Transformer(width=64, heads=4, layers=2, feedforward=256, position=POSITIONS["rotary"]),
}

study = Study(
    Experiment(
        task=Scan(),
        model=MODELS["gru"],
        train=Train(
            steps=4000,
            batch_size=64,
            learning_rate=2e-3,
            warmup=200,
            seeds=3,
            evaluate_every=500,
            save_every=500,
        ),
    ),
    product(
        Variation({name: {"model": model} for name, model in MODELS.items()}),
        over("task.split", simple="simple", length="length", jump="addprim_jump"),
    ),
    question="Does a network that knows every training command also understand new ones?",
    quick={"task.buckets": 1, "train.steps": 16, "train.warmup": 4, "train.seeds": 1},
    published={"gru-simple": 0.998, "gru-length": 0.138, "gru-jump": 0.012},
    bands={"gru-simple": (0.99, None)},
)
