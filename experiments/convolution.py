"""Convolution: can self-attention express it, and does it learn it?

Claim: one layer of self-attention whose heads attend at learned offsets can compute an unknown 3 × 3 convolution if it
has one head for each of the nine pixels. With four heads it cannot. Without positions it sees only a set of pixels.
Command: attnlab run experiments/convolution.py
         python experiments/convolution.py runs/convolution
Minutes on two cores: 3, on one of them. The second command draws runs/convolution/centres.png: the weights of each
head.
Expected: the mean squared error divided by the variance, 3 seeds: nine heads .0016 (.0004 to .0034), four .295
(.275-.314), without positions .930 (.929-.930).

Cordonnier, Loukas and Jaggi 2020, theorem 1: K² heads with relative positions express any convolution of K × K.
Training does not find their construction, one head per pixel. It finds nine mixtures of neighbours that together
distinguish all nine pixels.
"""

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.models import ConvolutionProbe
from attnlab.modules.position import Position, Quadratic2D
from attnlab.tasks.synthetic.filtering import Convolution
from attnlab.training.config import Train

SIZE = 3  # of the filter; the model does not know it

study = Study(
    Experiment(
        task=Convolution(size=SIZE),
        model=ConvolutionProbe(),
        train=Train(steps=2000, batch_size=16, learning_rate=1e-2, warmup=100, seeds=3, evaluate_every=500),
    ),
    Variation(
        {
            "nine-heads": {"model.position": Quadratic2D()},
            "four-heads": {"model.position": Quadratic2D(), "model.heads": 4},
            "no-position": {"model.position": Position()},
        }
    ),
    question="Can self-attention express a convolution, and does it learn it?",
    quick={"train.steps": 32, "train.warmup": 4, "train.seeds": 1},
)


def figure(folder: str) -> str:
    """Draw the weights of each head of `nine-heads` around a pixel; return the file's path."""
    from pathlib import Path

    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    from attnlab.lab.trained.load import load

    model, _ = load(Path(folder) / "nine-heads")
    bowls = model.position.bias(SIZE**2)
    around = np.arange(-3, 4)
    rows, columns = np.meshgrid(around, around, indexing="ij")
    whole = Figure(figsize=(6, 6.4), layout="constrained")
    for n, (axes, centre, alpha) in enumerate(
        zip(whole.subplots(SIZE, SIZE).flat, np.asarray(bowls.centre), np.asarray(bowls.alpha), strict=True), start=1
    ):
        weights = np.exp(-alpha * ((rows - centre[0]) ** 2 + (columns - centre[1]) ** 2))
        axes.imshow(weights / weights.sum(), cmap="Blues", vmin=0, vmax=1, extent=(-3.5, 3.5, 3.5, -3.5))
        axes.add_patch(Rectangle((-SIZE / 2, -SIZE / 2), SIZE, SIZE, fill=False, color="C1", linewidth=1.5))
        axes.set(xticks=(-3, 0, 3), yticks=(-3, 0, 3))
        axes.set_title(f"head {n}", fontsize=9)
    whole.supxlabel("columns to the right", fontsize=9)
    whole.supylabel("rows below", fontsize=9)
    whole.suptitle("The weights of each head around a pixel.\nThe frame is the convolution.", fontsize=10)
    path = Path(folder) / "centres.png"
    whole.savefig(path, dpi=150)
    return str(path)


if __name__ == "__main__":
    import sys

    from attnlab.lab.runs.run_folder import FolderError

    if len(sys.argv) != 2:
        sys.exit("usage: python experiments/convolution.py runs/convolution")
    try:
        print(figure(sys.argv[1]))
    except FolderError as missing:
        sys.exit(str(missing))
