"""Checks that nothing grows during 100,000 tiny training steps with 500 saves.

The first tenth is a warm-up. After it, the memory of the process may grow by at most 5%. No additional file or thread
may stay open, and nothing may be compiled again. Rows and checkpoints are written as in a real run.
"""

from __future__ import annotations

import gc
import os
import threading
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from attnlab.lab.runs.run_folder import RunFolder
from attnlab.training.checkpoints import Checkpoints
from attnlab.training.loop import fit
from attnlab.training.trainer import Trainer
from tests.faults.count import Count
from tests.small import TASK, TRAIN
from tests.training.toy import Bigram

FULL, SHORT = 100_000, 2_000
SAVES = 200  # steps between two saves
DRIFT = 0.05
COMPILED = "/jax/core/compile/backend_compile_duration"


def run(count: int, seed: int, folder: Path) -> Count:
    """Trains for `count` steps and reports one failure for each quantity that grew. The cases are the steps."""
    config = replace(TRAIN, steps=count, evaluate_every=SAVES, save_every=SAVES, seeds=(seed, seed + 1))
    problem, meter = TASK.load(), Meter(count)
    trainer = Trainer(lambda key: Bigram().create(key, problem.shape), problem, config)
    rows = RunFolder(folder / "run")
    fit(trainer, Checkpoints(folder / "checkpoints"), rows.append_metrics, rows.truncate_metrics, meter)
    grown = meter.grown()
    if [row["step"] for row in rows.metrics()[:: len(config.lanes)]][-1] != count:
        grown.append("the last row is not of the last step")
    opened = f"{meter.handles[-1]} files and {meter.threads[-1]} threads open"
    return Count(count, grown, f"{meter.saves} saves, memory {meter.drift():+.2%}, {opened}")


class Meter:
    """A progress listener that measures after the warm-up, each time a checkpoint is saved."""

    def __init__(self, steps: int):
        self.warm, self.saves, self.compiled = steps // 10, 0, 0
        self.memory, self.handles, self.threads = [], [], []
        jax.monitoring.register_event_duration_secs_listener(self._heard)

    def saved(self, step: int) -> None:
        """Measures memory, open files and threads. During the warm-up, resets the number of compilations instead."""
        self.saves += 1
        if step <= self.warm:
            self.compiled = 0
            return
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.memory.append(pages * os.sysconf("SC_PAGE_SIZE"))
        self.handles.append(len(os.listdir("/proc/self/fd")))
        self.threads.append(threading.active_count())

    def advanced(self, *given) -> None:
        """Does nothing."""

    evaluated = note = advanced

    def drift(self) -> float:
        """Returns the relative growth of the median memory from the first tenth of the measurements to the last."""
        tenth = max(1, len(self.memory) // 10)
        first, last = np.median(self.memory[:tenth]), np.median(self.memory[-tenth:])
        return float(last / first - 1)

    def grown(self) -> list[str]:
        """Returns one line for each quantity that grew."""
        found = []
        if self.drift() > DRIFT:
            found.append(f"memory grew by {self.drift():.1%}, from {self.memory[0] / 1e6:.0f} MB")
        for what, seen in (("files", self.handles), ("threads", self.threads)):
            if max(seen[-3:]) > max(seen[:3]):
                found.append(f"{max(seen[:3])} {what} were open at first, {max(seen[-3:])} at last")
        if self.compiled:
            found.append(f"{self.compiled} programs were compiled after the warm-up")
        return found

    def _heard(self, event: str, seconds: float, **more) -> None:
        self.compiled += event == COMPILED
