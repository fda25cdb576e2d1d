"""Alike: how often does a study find a difference where there is none?

Claim: of studies that compare softmax with softmax of other seeds, at most 5.9% call one of them better: as often as
the level of 95% says, and no more, though what the seeds end at is far from normal.
Command: attnlab run experiments/alike.py
         python experiments/alike.py runs/alike
Minutes on two cores: not yet measured.
Expected: not yet measured. The second command draws 2,000 studies of 3, of 5 and of 10 seeds a side from the 20 seeds
trained, no seed on both sides, compares their sides as any study does, and says in how many one was called better.

The task is that of experiments/reverse.py, stopped while it is being learned: seeds are far apart then. Studies share
seeds, so that the share they give is not as sure as that of 2,000 studies trained apart: tests/lab/coverage.py has
those, of numbers drawn.
"""

from attnlab.lab.study import Experiment, Study
from attnlab.models import Transformer
from attnlab.tasks.reverse import Reverse
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

STUDIES, SEEDS, MOST = 2000, (3, 5, 10), 0.059


def told_apart(values: list[float], seeds: int) -> float:
    """The share of drawn studies, so many seeds a side, in which one side is called better."""
    import numpy as np

    from attnlab.lab.statistics import compare

    random, found = np.random.default_rng(seeds), 0
    for _ in range(STUDIES):
        drawn = random.choice(values, 2 * seeds, replace=False)
        found += compare(drawn[:seeds], drawn[seeds:], margin=None).verdict in ("better", "worse")
    return found / STUDIES


def judge(folder: str) -> list[str]:
    """A line for every number of seeds that the finished study in a folder suffices for."""
    from pathlib import Path

    from attnlab.lab.outcome import outcomes

    first, *others = outcomes(Path(folder))
    if others:
        return [f"{folder}: holds {1 + len(others)} variants; the study of one alone is asked for"]
    values = list(first.by_seed(first.result["metric"]).values()) if first.result else []
    lines = [f"{len(values)} seeds of softmax, from {min(values):.1%} to {max(values):.1%}"] if values else []
    for seeds in SEEDS:
        if 2 * seeds <= len(values):
            share = told_apart(values, seeds)
            kept = "kept" if share <= MOST else "MISSED"
            lines.append(f"{kept}  {seeds} seeds a side: one called better in {share:.1%} of {STUDIES:,} studies")
    return lines or [f"{folder}: no finished study of seeds that all converged"]


if __name__ == "__main__":
    import sys

    if len(sys.argv) != 2:
        sys.exit("usage: python experiments/alike.py runs/alike")
    print("\n".join(judge(sys.argv[1])))
