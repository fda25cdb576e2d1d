"""Measure the time of `show` and `report` for a study of 20 variants and 8 seeds.

    python -m tests.lab.large              half a minute

Each is a process of its own, from its start to its end, imports included. The page is of made-up runs, with curves of
1,500 steps and maps of three examples. What is shown are 20 of the 23 mechanisms that are compared on recall. Of that,
a second and a half is imports, a second and a half the networks that are matched, and the rest is what jax takes to
trace each loss and its gradient, .3 to 1.1 s a variant, in two processes. Nothing that was tried made that quicker but
fewer operations: layers that are unrolled, jax's other way to linearise, parts that are traced once for all variants,
no selection as a function of its own, first values that are drawn by functions of their own, and none of Python's
search for cycles.
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
    """The seconds of a Python process."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    """Print both times."""
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
