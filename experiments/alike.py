"""Alike: how often does a study report a difference where there is none?

Claim: studies that compare softmax with softmax of other seeds report one of them as better as often as a confidence
level of 95% implies.
Command: attnlab run experiments/alike.py
         python experiments/alike.py runs/alike
Minutes on two cores: 34, while other programs ran, with jax's compilation cache (2.8 GHz Xeon).
Expected: 20 seeds reach between 53.5 and 59.0% (mean 56.6%). Of 2,000 studies drawn from them, one side is reported as
better in 5.1% with 3 seeds per side, in 6.2% with 5 and in 4.7% with 10. The second command draws the studies, with no
seed on both sides, and compares the sides as any study does.

To be measured again: all numbers. They were measured before sources ended with an end mark and before batches of
different lengths alternated.

The drawn studies share the same 20 seeds, so their share is less certain than that of 2,000 studies trained
independently. The share of independent studies would lie between 3.9 and 6.2% 98 times in 100. The share of studies
drawn from 20 values of a normal distribution lies within the bounds that the second command prints. For 5 seeds per
side these are 3.0 to 6.4%. tests/lab/coverage.py checks independent studies of random numbers.

The task is that of experiments/reverse.py. Training stops while the task is being learned, because the seeds differ
widely at that point.
"""

from attnlab.lab.study import Experiment, Study
from attnlab.models import Transformer
from attnlab.tasks.synthetic.reverse import Reverse
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Reverse(),
        model=Transformer(width=64, heads=4, layers=2),
        train=Train(
            steps=1500,
            batch_size=64,
            learning_rate=2e-3,
            warmup=100,
            seeds=20,
            evaluate_every=500,
            save_every=500,
        ),
    ),
    question="How often does a study report a difference where there is none?",
    quick={"task.buckets": 1, "train.steps": 16, "train.warmup": 4, "train.seeds": 6},
)

STUDIES, SEEDS, POPULATIONS = 2000, (3, 5, 10), 1000


def told_apart(values: list[float], seeds: int) -> float:
    """The share of drawn studies, with `seeds` seeds per side, in which one side is reported as better."""
    import numpy as np

    from attnlab.lab.statistics import compare

    random, found = np.random.default_rng(seeds), 0
    for _ in range(STUDIES):
        drawn = random.choice(values, 2 * seeds, replace=False)
        found += compare(drawn[:seeds], drawn[seeds:], margin=None).verdict in ("better", "worse")
    return found / STUDIES


def bounds(count: int, seeds: int) -> tuple[float, float]:
    """The interval in which that share lies for 98 of 100 sets of `count` values from a normal distribution."""
    import numpy as np
    from scipy.special import stdtrit

    random, shares = np.random.default_rng(seeds), []
    for _ in range(POPULATIONS):
        drawn = np.argsort(random.random((STUDIES, count)), axis=1)[:, : 2 * seeds]
        sides = random.normal(size=count)[drawn].reshape(STUDIES, 2, seeds)
        apart = sides[:, 0] - sides[:, 1]
        t = apart.mean(1) / (apart.std(1, ddof=1) / seeds**0.5)
        shares.append(np.mean(np.abs(t) > stdtrit(seeds - 1, 0.975)))
    low, high = np.quantile(shares, (0.01, 0.99))
    return float(low), float(high)


def judge(folder: str) -> list[str]:
    """One line for each number of seeds per side for which the finished study in the folder has enough seeds."""
    from pathlib import Path

    from attnlab.lab.results.outcome import outcomes

    first, *others = outcomes(Path(folder))
    if others:
        return [f"{folder}: holds {1 + len(others)} variants; expected a study with one variant"]
    values = list(first.by_seed(first.result["metric"]).values()) if first.result else []
    lines = [f"{len(values)} seeds of softmax, from {min(values):.1%} to {max(values):.1%}"] if values else []
    for seeds in SEEDS:
        if 2 * seeds <= len(values):
            share, (low, high) = told_apart(values, seeds), bounds(len(values), seeds)
            kept = "kept" if low <= share <= high else "MISSED"
            told = f"one side reported as better in {share:.1%} of {STUDIES:,} studies"
            lines.append(
                f"{kept}  {seeds} seeds per side: {told} ({low:.1%} to {high:.1%} of {len(values)} normal values)"
            )
    return lines or [f"{folder}: no finished study of seeds that all converged"]


if __name__ == "__main__":
    import sys

    if len(sys.argv) != 2:
        sys.exit("usage: python experiments/alike.py runs/alike")
    print("\n".join(judge(sys.argv[1])))
