"""Convolution: does self-attention contain it, and does it find it?

Claim: one layer of self-attention whose heads can look a learned way off does what an unknown 3 × 3 convolution does,
with a head for each of its nine pixels; with four heads it cannot, and without positions it sees a set of pixels.
Command: attnlab run experiments/convolution.py
         python experiments/convolution.py runs/convolution
Minutes on two cores: not yet measured. The second command draws runs/convolution/centres.png: where the heads look.
Expected: the mean square error over the variance; not yet measured.

Cordonnier, Loukas and Jaggi 2020, theorem 1: K² heads with relative positions express any convolution of K × K.
"""

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.models import Filter
from attnlab.modules.position import Position, Quadratic2D
from attnlab.tasks.filtering import Convolution
from attnlab.training.config import Train

SIZE = 3  # of the filter, which nobody is told

study = Study(
    Experiment(
        task=Convolution(size=SIZE),
        model=Filter(),
        train=Train(steps=2000, batch_size=16, learning_rate=1e-2, warmup=100, seeds=3, evaluate_every=500),
    ),
    Variation(
        {
            "nine-heads": {"model.position": Quadratic2D()},
            "four-heads": {"model.position": Quadratic2D(), "model.heads": 4},
            "no-position": {"model.position": Position()},
        }
    ),
    question="Does self-attention find the convolution that it contains?",
    quick={"train.steps": 32, "train.warmup": 4, "train.seeds": 1},
)


def figure(folder: str) -> str:
    """Draw where the heads of `nine-heads` look, beside the pixels of the convolution; answer where."""
    from pathlib import Path

    from matplotlib.figure import Figure

    from attnlab.lab.loading import load

    model, _ = load(Path(folder) / "nine-heads")
    centres, reach = model.position.centres[...], (SIZE - 1) / 2
    whole = Figure(figsize=(4.5, 4.5), layout="constrained")
    axes = whole.subplots()
    pixels = [n - reach for n in range(SIZE)]
    axes.plot(*zip(*[(a, b) for a in pixels for b in pixels], strict=True), "s", color="lightgrey", markersize=34)
    axes.plot(centres[:, 1], centres[:, 0], "o", color="C0")
    for n, (row, column) in enumerate(centres, start=1):
        axes.annotate(str(n), (column, row), xytext=(5, 5), textcoords="offset points")
    axes.set(xlabel="columns to the right", ylabel="rows below", aspect="equal")
    axes.invert_yaxis()
    axes.set_title("Grey: pixels of the convolution. Blue: where each head looks.", fontsize=10)
    path = Path(folder) / "centres.png"
    whole.savefig(path, dpi=150)
    return str(path)


if __name__ == "__main__":
    import sys

    print(figure(sys.argv[1]))
