"""What a run keeps beside its result to be looked at: maps, pictures, answers. What fails here costs no result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import jax
import numpy as np

from attnlab.console.errors import explain
from attnlab.lab.planning.plan import Plan
from attnlab.lab.runs.answer_table import write_answers as keep_answers
from attnlab.lab.runs.identity import checkpoints_of
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.trained.pictures import answer_pictures
from attnlab.lab.trained.snapshot import snapshots
from attnlab.training.averaging import averaged
from attnlab.training.trainer import Trainer

QUICK = 256  # test examples of a preview: one batch, of the shape that validation has compiled
TRIES = 3  # times that drawing is begun: what ends the process each time is given up


def begin(folder: RunFolder) -> None:
    """Write down that a run is about to have a result whose maps, pictures and answers are not drawn yet."""
    with suppress(OSError):  # where there is no room for an empty file, the result says so
        folder.artifacts_pending.touch()


def draw(plan: Plan, model: Any, alive: np.ndarray, answers: list, found: dict, note: Callable[[str], None]) -> None:
    """Write the maps and pictures of the first lane of the chosen rate that did not diverge, and its seeds' answers.

    `model` holds all lanes, `answers` what each said to the test, `found` is the result. What fails is noted.
    """
    if found["metrics"]:
        lanes = plan.experiment.train.lanes
        lane = next(n for n, (_, rate) in enumerate(lanes) if rate == found["learning_rate"] and alive[n])
        first = jax.tree.map(lambda x: x[lane], model)
        parts = {
            "maps": lambda: _write(plan, "maps", snapshots(plan.experiment.model, first, plan.problem)),
            "pictures": lambda: _write(plan, "pictures", answer_pictures(first, plan.problem)),
            "answers to the test": partial(_answers, plan, answers, found, note),
        }
        for what, make in parts.items():
            attempt(make, f"{plan.variant}: its {what} are not kept", "its result is complete", note)
    _end(plan.folder)


def draw_again(plan: Plan, found: dict, note: Callable[[str], None]) -> None:
    """Draw what a process that ended too early left undrawn, from the checkpoint that the result `found` is of."""
    if _gives_up(plan.folder):
        note(f"{plan.variant}: drawing its maps ended the process {TRIES} times; they are left out")
        return
    lost = f"{plan.variant}: its maps, pictures and answers are not kept"
    attempt(partial(_from_checkpoint, plan, found, note), lost, "its result is complete", note)
    _end(plan.folder)


def attempt(act: Callable[[], Any], lost: str, kept: str, note: Callable[[str], None]) -> Any:
    """What `act` answers; where it fails None, and a note of what is lost, why, and what is kept."""
    try:
        return act()
    except Exception as error:
        note(f"{lost} ({explain(error)[0].removeprefix('attnlab: error: ')}); {kept}")
        return None


def examined(quick: bool) -> int | None:
    """How many test examples are looked at; None: all."""
    return QUICK if quick else None


def _from_checkpoint(plan: Plan, found: dict, note: Callable[[str], None]) -> None:
    train, problem = plan.experiment.train, plan.problem
    trainer = Trainer(lambda key: plan.experiment.model.create(key, problem.shape), problem, train)
    step = found["steps"]
    state, _ = checkpoints_of(plan.folder, problem.fingerprint).read(step, jax.eval_shape(trainer.start))
    model = averaged(train, state, step)
    answers = trainer.answers(model, "test", examined(plan.quick), plan.experiment.decoder)
    draw(plan, model, np.asarray(state.alive), answers, found, note)


def _gives_up(folder: RunFolder) -> bool:
    """Whether drawing was begun as often as it may; else it counts once more."""
    with suppress(OSError):
        begun = folder.artifacts_pending.stat().st_size + 1
        if begun < TRIES:
            folder.artifacts_pending.write_bytes(b"." * begun)
            return False
    _end(folder)
    return True


def _end(folder: RunFolder) -> None:
    with suppress(OSError):
        folder.artifacts_pending.unlink(missing_ok=True)


def _write(plan: Plan, name: str, value: dict[str, Any] | None) -> None:
    if value is not None:
        plan.folder.write(name, value)


def _answers(plan: Plan, answers: list, found: dict, note: Callable[[str], None]) -> None:
    """Write the answers to the test, of every seed at the chosen rate."""
    lanes = plan.experiment.train.lanes
    rows = {
        seed: plan.problem.rows("test", answers[lanes.index((seed, found["learning_rate"]))], examined(plan.quick))
        for seed in found["seeds"]
    }
    if cut := keep_answers(plan.folder.file("answers"), rows, plan.problem.figure):
        note(f"{plan.variant}: {cut}")
