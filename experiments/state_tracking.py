"""State tracking: which mechanisms follow a state beyond the length they were trained at?

Claim: a linear recurrence whose transitions have only positive eigenvalues cannot solve parity at every length. With β
in 0 … 2 a delta rule has negative ones, and can (Grazzi et al. 2025). In one layer, several steps of the rule per token
reach groups that one step does not (Siems et al. 2025). Softmax attention of a fixed depth cannot express words in S5,
unless TC0 = NC1 (Merrill et al. 2024). PaTH attention can track swaps of five elements (Yang et al. 2025).
Command: attnlab run experiments/state_tracking.py
         attnlab run experiments/state_tracking.py task=s3 --out runs/s3
         attnlab run experiments/state_tracking.py task=s5 task.moved=2 --out runs/s5
         attnlab run experiments/state_tracking.py task=group-words task.group=q8 --out runs/q8
         python experiments/state_tracking.py runs/state_tracking      (draws accuracy against length)
Minutes on two cores: not measured; the records sum to 71 minutes of one core for parity, 52 for s3 and 46 for s5, while
other programs ran (AMD EPYC).
Expected: words of parity without an error at 32, 64, 128 and 256 elements, mean of 3 seeds: gated-delta with β in 0 … 2
100% at all four; delta-product with two steps 100, 100, 100 and 89 (44-100), three 100, 100, 72 and 2.5, four 100, 97,
62 and 0.1; PaTH 71 (57-86), 58, 28 and 4; gated-delta with β in 0 … 1 1.4 and then 0; softmax and forgetting attention
0. So the range of β decides, as claimed. A parity needs one step; more of them learn it too and lose it at 4 to 8 times
the length of training, where β in 0 … 2 alone does not.
Words of s3, likewise: delta-product 100% at all lengths with two and three steps, and 100, 100, 100 and 99.9 (99.3-100)
with four; all others 0, but for 0.1 of gated-delta with β in 0 … 2 at 32. So here the steps decide.
Words of s5 in which each element is a transposition or the identity (`task.moved=2`): gated-delta with β in 0 … 2 and
delta-product with two, three and four steps 100% at all lengths, all others 0. A transposition is one reflection, so
one step suffices. PaTH does not learn these words within 1,500 steps, although it can express them.
Words of all 120 elements of s5 need four steps. Delta-product with four steps has not learned them after 4,000 training
steps: 0% at all lengths, and 3.8% of the elements at 32. Its loss is 4.64, that of a model that knows the first product
alone (31/32 of ln 120).

The task tags each element of a word with the product of all elements so far. The metric is the fraction of words of 32
to 256 elements all of whose products are right; `sequence_accuracy.256` is that of 256. Training has words of 32
elements. One layer, as in the paper of DeltaProduct, so that layers do not take the place of steps; `model.layers=2`
has two. Softmax has rotary positions. The others have none: forget gates, PaTH and recurrences know the order.
"""

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.mechanisms import MECHANISMS
from attnlab.mechanisms.delta_product import DeltaProduct
from attnlab.mechanisms.gated_delta import GatedDelta
from attnlab.models import Language
from attnlab.modules.position import POSITIONS
from attnlab.tasks.synthetic.group_words import Parity
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Parity(length=32, tested=(32, 64, 128, 256)),
        model=Language(width=64, heads=4, layers=1, feedforward=128, position=POSITIONS["none"]),
        train=Train(
            steps=1500,
            batch_size=64,
            learning_rate=3e-3,
            warmup=100,
            seeds=3,
            evaluate_every=500,
            save_every=1000,
        ),
    ),
    Variation(
        {
            "softmax": {"model.mechanism": MECHANISMS["softmax"], "model.position": POSITIONS["rotary"]},
            "forgetting": {"model.mechanism": MECHANISMS["forgetting"]},
            "path": {"model.mechanism": MECHANISMS["path"]},
            "gated-delta": {"model.mechanism": GatedDelta()},
            "gated-delta-negative": {"model.mechanism": GatedDelta(negative_eigenvalues=True)},
            **{f"delta-product-{n}": {"model.mechanism": DeltaProduct(writes=n)} for n in (2, 3, 4)},
        }
    ),
    # What negative eigenvalues bring, and then each further step.
    against={
        "gated-delta-negative": "gated-delta",
        "delta-product-2": "gated-delta-negative",
        "delta-product-3": "delta-product-2",
        "delta-product-4": "delta-product-3",
    },
    question="Which mechanisms follow a state beyond the length they were trained at?",
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2},
)


def figure(folder: str) -> str:
    """Draw the accuracy of whole words against their length, with intervals, for each variant; answer where."""
    from pathlib import Path

    from matplotlib.figure import Figure

    from attnlab.lab.results.outcome import outcomes

    whole = Figure(figsize=(8, 4.5), layout="constrained")
    axes, ticks = whole.subplots(), set[int]()
    for n, outcome in enumerate(outcomes(Path(folder))):
        aside = 2 ** (0.03 * (n - 3))  # so that the intervals of one length stand side by side
        found = {
            int(name.rpartition(".")[2]): metric
            for name, metric in outcome.metrics.items()
            if name.startswith("sequence_accuracy.") and metric.mean is not None
        }
        lengths = sorted(found)
        ticks.update(lengths)
        means = [100 * (found[length].mean or 0.0) for length in lengths]
        axes.plot([aside * length for length in lengths], means, color=f"C{n}", marker="o", label=outcome.name)
        for length in lengths:
            low, high = found[length].low, found[length].high
            if low is not None and high is not None:
                ends = [100 * max(0.0, low), 100 * min(1.0, high)]
                axes.plot([aside * length] * 2, ends, color=f"C{n}", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(ticks), [str(length) for length in sorted(ticks)])
    axes.set(xlabel="length of the word", ylabel="words without an error (%)", ylim=(-3, 103))
    whole.legend(loc="outside right upper", fontsize=8, frameon=False)
    path = Path(folder) / "length.png"
    whole.savefig(path, dpi=150)
    return str(path)


if __name__ == "__main__":
    import sys

    if len(sys.argv) != 2:
        sys.exit("usage: python experiments/state_tracking.py runs/state_tracking")
    print(figure(sys.argv[1]))
