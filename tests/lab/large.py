"""Measures the time of `show` and `report` for a study of 20 variants and 8 seeds.

    python -m tests.lab.large              half a minute

Each command runs in its own process and is timed from start to end, imports included. `report` draws the page of
synthetic runs, with curves of 1,500 steps and maps of three examples. `show` describes 20 of the 23 mechanisms that are
compared on recall. Imports take 1.5 s of its time, and matching the networks takes 1.5 s. In the rest, jax traces each
loss and its gradient in two processes, .3 to 1.1 s per variant. Only fewer operations made this faster. These attempts
did not: unrolled layers, jax's other linearization, parts traced once for all variants, no selection as a separate
function, initial values drawn by separate functions, and no garbage collection of cycles.
"""

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.lab.synthetic import write_study

VARIANTS, SEEDS = 20, 8
STUDY = "experiments/softmax_vs_linear_recall.py"
TWENTY = f"""
from dataclasses import replace
from attnlab.lab import load_study

whole = load_study({STUDY!r})
kept = {{name: changes for n, (name, changes) in enumerate(whole.vary.variants.items()) if n % 7 != 6}}
study = replace(whole, vary=replace(whole.vary, variants=kept), against={{}}, published={{}}, bands={{}})
"""


def seconds(*arguments: str) -> float:
    """Returns the seconds that a Python process takes."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    """Prints both times."""
    with TemporaryDirectory() as folder:
        study = Path(folder) / "twenty.py"
        study.write_text(TWENTY, encoding="utf-8")
        took = seconds("-m", "attnlab", "show", str(study), f"train.seeds={SEEDS}")
        print(f"show of {VARIANTS} variants × {SEEDS} seeds: {took:.1f} s", flush=True)
        print(f"import of jax and flax, to tell a slow hour: {seconds('-c', 'import flax.nnx'):.1f} s", flush=True)
        home = Path(folder) / "study"
        variants = {f"v{n}": {"mean": 0.9 + n / 300, "offset": 1 + n / 20} for n in range(VARIANTS)}
        write_study(home, variants, seeds=tuple(range(SEEDS)))
        took = seconds("-m", "attnlab", "report", str(home))
        print(f"report of {VARIANTS} variants × {SEEDS} seeds: {took:.1f} s")


if __name__ == "__main__":
    main()
