"""Alike: how often does a study find a difference where there is none?

Claim: studies that compare softmax with softmax of other seeds call one of them better as often as a level of 95% says.
Command: attnlab run experiments/alike.py
         python experiments/alike.py runs/alike
Minutes on two cores: 34, beside other work, with jax's compilation cache (2.8 GHz Xeon).
Expected: 20 seeds come to between 53.5 and 59.0% (mean 56.6%); of 2,000 studies drawn from them one is called better in
5.1% with 3 seeds a side, in 6.2% with 5 and in 4.7% with 10. The second command draws the studies, no seed on both
sides, and compares their sides as any study does.

To be measured again: all numbers, which were measured before sources ended with an end mark and before batches of all
lengths alternated.

Studies drawn from 20 seeds share them, so that their share is less sure than that of 2,000 studies trained apart, which
would lie between 3.9 and 6.2% 98 times in 100: of 20 values drawn from a normal distribution it lies within the bounds
that the second command prints, for 5 seeds a side 3.0 to 6.4%. tests/lab/coverage.py has studies apart, of numbers
drawn.

The task is that of experiments/reverse.py, stopped while it is being learned: seeds are far apart then.
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
    question="How often does a study find a difference where there is none?",
    quick={"task.buckets": 1, "train.steps": 16, "train.warmup": 4, "train.seeds": 6},
)

STUDIES, SEEDS, POPULATIONS = 2000, (3, 5, 10), 1000


def told_apart(values: list[float], seeds: int) -> float:
    """The share of drawn studies, so many seeds a side, in which one side is called better."""
    import numpy as np

    from attnlab.lab.statistics import compare

    random, found = np.random.default_rng(seeds), 0
    for _ in range(STUDIES):
        drawn = random.choice(values, 2 * seeds, replace=False)
        found += compare(drawn[:seeds], drawn[seeds:], margin=None).verdict in ("better", "worse")
    return found / STUDIES


def bounds(count: int, seeds: int) -> tuple[float, float]:
    """Between which that share lies for 98 of 100 sets of so many values from a normal distribution."""
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
    """A line for every number of seeds that the finished study in a folder suffices for."""
    from pathlib import Path

    from attnlab.lab.results.outcome import outcomes

    first, *others = outcomes(Path(folder))
    if others:
        return [f"{folder}: holds {1 + len(others)} variants; the study of one alone is asked for"]
    values = list(first.by_seed(first.result["metric"]).values()) if first.result else []
    lines = [f"{len(values)} seeds of softmax, from {min(values):.1%} to {max(values):.1%}"] if values else []
    for seeds in SEEDS:
        if 2 * seeds <= len(values):
            share, (low, high) = told_apart(values, seeds), bounds(len(values), seeds)
            kept = "kept" if low <= share <= high else "MISSED"
            told = f"one called better in {share:.1%} of {STUDIES:,} studies"
            lines.append(
                f"{kept}  {seeds} seeds a side: {told} ({low:.1%} to {high:.1%} of {len(values)} normal values)"
            )
    return lines or [f"{folder}: no finished study of seeds that all converged"]


if __name__ == "__main__":
    import sys

    if len(sys.argv) != 2:
        sys.exit("usage: python experiments/alike.py runs/alike")
    print("\n".join(judge(sys.argv[1])))
