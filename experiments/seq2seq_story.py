"""The story of sequence to sequence on Multi30k, German to English: who forgets a long sentence, and who looks back?

Claim: with attention a recurrent model is at least 8 BLEU better than without, and the more so the longer the
sentence; a Transformer needs no recurrence, and a linear one comes near it.
Command: ATTNLAB_DATA=... attnlab run experiments/seq2seq_story.py
         python experiments/seq2seq_story.py runs/seq2seq_story
Minutes on two cores: not yet measured.
Expected: BLEU of words on test2016, also by the words in the source ("bleu_tokenised_lower.0-10 words"); not yet
measured. The second command draws runs/seq2seq_story/lengths.png.

Published, validation: without attention 15.1, with Bahdanau's 31.6; on the test a GRU with Bahdanau's 28.22, a
Transformer of 3 + 3 layers 35.73 (with their own set-ups, all of them trained longer).
"""

from attnlab.data.units import Bpe
from attnlab.lab.study import Experiment, Study, Variation
from attnlab.mechanisms import Linear, Softmax
from attnlab.mechanisms.window import LocalP
from attnlab.models import Transformer
from attnlab.models.seq2seq import Seq2Seq
from attnlab.tasks.translation import Multi30k
from attnlab.training.config import Train

RECURRENT = Seq2Seq(width=192, cell="gru", bidirectional=True, dropout=0.2)
TRANSFORMER = Transformer(width=128, heads=4, layers=3, feedforward=384, dropout=0.2, tied=True, shared=True)


def recurrent(**fields) -> dict:
    """The recurrent model with those fields."""
    from dataclasses import replace

    return {"model": replace(RECURRENT, **fields)}


def transformer(mechanism) -> dict:
    """The Transformer with that mechanism; its rate is half of the recurrent models'."""
    return {"model": TRANSFORMER, "model.mechanism": mechanism, "train.learning_rate": 1e-3}


study = Study(
    Experiment(
        task=Multi30k(source="de", target="en", units=Bpe(size=4000), buckets=4),
        model=RECURRENT,
        train=Train(
            steps=1200,
            batch_size=128,
            learning_rate=2e-3,
            warmup=200,
            seeds=1,
            evaluate_every=400,
            save_every=100,
            average=4,
        ),
    ),
    Variation(
        {
            "last-state": recurrent(),
            "bahdanau": recurrent(attention="bahdanau"),
            "luong": recurrent(attention="luong"),
            "local-p": recurrent(attention="luong", mechanism=LocalP()),
            "transformer": transformer(Softmax()),
            "transformer-linear": transformer(Linear()),
        }
    ),
    question="Who forgets a long sentence, and who looks back?",
    quick={"task.buckets": 1, "train.steps": 8, "train.average": 0, "train.warmup": 4, "train.batch_size": 16},
)


def figure(folder: str) -> str:
    """Draw BLEU against the words of the source, a line a model; answer where."""
    from pathlib import Path

    from matplotlib.figure import Figure

    from attnlab.lab.outcome import outcomes

    whole = Figure(figsize=(8, 5), layout="constrained")
    axes = whole.subplots()
    for outcome in sorted(outcomes(Path(folder)), key=lambda outcome: outcome.order):
        groups = {name.partition(".")[2]: each for name, each in outcome.metrics.items() if name.endswith(" words")}
        if not groups:  # not finished
            continue
        axes.plot(list(groups), [100 * (each.mean or 0.0) for each in groups.values()], marker="o", label=outcome.name)
    axes.set(xlabel="words in the source", ylabel="BLEU-4 (tokenised, lower case)", ylim=(0, None))
    axes.legend()
    path = Path(folder) / "lengths.png"
    whole.savefig(path, dpi=150)
    return str(path)


if __name__ == "__main__":
    import sys

    if len(sys.argv) != 2:
        sys.exit("usage: python experiments/seq2seq_story.py runs/seq2seq_story")
    print(figure(sys.argv[1]))
