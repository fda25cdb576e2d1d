"""Eight seeds as one program, compared with eight runs one after the other, from the command line and with compilation.

Claim: at least twice as fast, on dates and on multi-query recall, with no compilation cache on either side.

Command: python benchmarks/lanes.py --lengths 500     (10 to 30 min)

Every run is a process of its own, `attnlab run FILE train.seeds=…`, from its start to its report: imports, data,
compilation, training, evaluation. The single program has seeds 0 to 7 as lanes; each of the other runs has one seed.
Steps are those of the experiment, unless `--lengths` gives others. With fewer steps compilation takes a larger share of
the time, and eight runs compile eight times as much.

Expected: the last lines say which part of the claim holds on this machine. On two cores of an AMD EPYC, in an hour when
the machine was slow, the claim holds: dates take 276 seconds against 874, 3.16 times as long, recall 140 against 302,
2.16. Without other load dates took 133 against 418, 3.15, and in another slow hour 215 against 702, 3.27. The single
program saves what each run does before its first step, and uses the time in which one lane leaves the two cores idle.
Beyond that, the work of a step grows with its lanes: for recall one lane took 25 ms and eight 161 to 184, for dates 51
and 287. So the longer the training, the less is saved.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from tempfile import TemporaryDirectory

from attnlab.bench.script import claim, finish, options, say
from attnlab.console.format import duration

SEEDS = range(8)
TASKS = {
    "dates": ["experiments/dates.py", "model.mechanism=softmax"],
    "recall": ["experiments/softmax_vs_linear_recall.py", "model.mechanism=softmax", "train.learning_rate=1e-3"],
}


def seconds(arguments: list[str]) -> float:
    """Return the seconds of a run from start to end. Raises CalledProcessError if it fails."""
    # No compilation cache: no run reuses the programs of another.
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    with TemporaryDirectory() as out:
        command = [sys.executable, "-m", "attnlab", "run", *arguments, "--out", out]
        began = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return time.perf_counter() - began


def main() -> None:
    """Measure both ways in turn and print the results."""
    asked = options(__doc__, [0], 1)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in TASKS}
    for name, arguments in TASKS.items():
        for steps in asked.lengths:
            more = [f"train.steps={steps}"] if steps else []
            for _ in range(asked.repeat):
                together = seconds([*arguments, *more, f"train.seeds={','.join(map(str, SEEDS))}"])
                say(f"{name}: eight seeds as one program {duration(together)}")
                alone = [seconds([*arguments, *more, f"train.seeds={seed},"]) for seed in SEEDS]
                say(f"{name}: one after the other {duration(sum(alone))}, {sum(alone) / together:.2f} times as long")
                found[name].append({"together": together, "alone": sum(alone)})
    ratios = [one["alone"] / one["together"] for each in found.values() for one in each]
    claims = [claim("eight seeds together against one after the other", ratios, least=2.0)]
    finish(__file__, asked.save, claims, found=found)


if __name__ == "__main__":
    main()
