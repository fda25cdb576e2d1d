"""Write the artifacts of a run: maps, pictures and answers. A failure here does not affect the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import PyTree

from attnlab.console.errors import explain
from attnlab.lab.planning.plan import Plan
from attnlab.lab.runs.answer_table import write_answers
from attnlab.lab.runs.identity import checkpoints_of
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.trained.pictures import answer_pictures
from attnlab.lab.trained.snapshot import snapshots
from attnlab.training.averaging import averaged
from attnlab.training.state import select_lane
from attnlab.training.trainer import Trainer

QUICK = 256  # test examples of a preview: one batch of the shape that is already compiled for validation
T = TypeVar("T")
TRIES = 3  # attempts to draw. If each one ends the process, the artifacts are left out


def begin(folder: RunFolder) -> None:
    """Create the marker that the artifacts of a run are not written yet, before its result is written."""
    with suppress(OSError):  # if the disk is full, writing the result reports it
        folder.artifacts_pending.touch()


def draw(
    plan: Plan,
    trainer: Trainer,
    models: PyTree,
    alive: np.ndarray,
    answers: list,
    found: dict,
    note: Callable[[str], None],
) -> None:
    """Write maps and pictures of one lane, and the answers of all seeds at the chosen learning rate.

    The lane is the first one at the chosen rate that did not diverge. Failures are reported as notes.

    Args:
        plan: the plan of the variant.
        trainer: computes answers to the first examples, usually by a program that is compiled already.
        models: the models of all lanes, stacked.
        alive: whether each lane has not diverged, [lanes].
        answers: the answers of each lane on test.
        found: the result.
        note: called with a line for each failure.
    """
    if found["metrics"]:
        lanes = plan.experiment.train.lanes
        lane = next(n for n, (_, rate) in enumerate(lanes) if rate == found["learning_rate"] and alive[n])
        first = select_lane(models, lane)
        shown = partial(trainer.first_answers, models, lane)
        parts = {
            "maps": lambda: _write(plan, "maps", snapshots(plan.experiment.model, first, plan.problem, shown)),
            "pictures": lambda: _write(plan, "pictures", answer_pictures(plan.problem, shown)),
            "test answers": partial(_answers, plan, answers, found, note),
        }
        for what, make in parts.items():
            attempt(make, f"{plan.variant}: the {what} were not saved", "the result is complete", note)
    _end(plan.folder)


def draw_again(plan: Plan, found: dict, note: Callable[[str], None]) -> None:
    """Write the artifacts that an earlier process did not write, from the checkpoint of the result `found`.

    Args:
        plan: the plan of the variant.
        found: the content of `result.json`.
        note: called with a line for each failure.
    """
    if _gives_up(plan.folder):
        note(f"{plan.variant}: the process ended {TRIES} times while drawing the maps, so they are skipped")
        return
    lost = f"{plan.variant}: the maps, pictures and answers were not saved"
    attempt(partial(_from_checkpoint, plan, found, note), lost, "the result is complete", note)
    _end(plan.folder)


def attempt(act: Callable[[], T], lost: str, kept: str, note: Callable[[str], None]) -> T | None:
    """Call a function, and turn an exception into a note.

    Args:
        act: the function.
        lost: what is lost if it fails, for the note.
        kept: what is kept, for the note.
        note: called with the line.

    Returns:
        The result of the function, or None if it failed.
    """
    try:
        return act()
    except Exception as error:
        note(f"{lost} ({explain(error)[0].removeprefix('attnlab: error: ')}); {kept}")
        return None


def examined(quick: bool) -> int | None:
    """Return the number of test examples to evaluate, or None for all."""
    return QUICK if quick else None


def _from_checkpoint(plan: Plan, found: dict, note: Callable[[str], None]) -> None:
    """Restore the tested model from its checkpoint, repeat the answers, and write the artifacts."""
    train, problem = plan.experiment.train, plan.problem
    trainer = Trainer(lambda key: plan.experiment.model.create(key, problem.shape), problem, train)
    step = found["steps"]
    state, _ = checkpoints_of(plan.folder, problem.fingerprint).read(step, jax.eval_shape(trainer.start))
    model = averaged(train, state, step)
    answers = trainer.answers(model, "test", examined(plan.quick), plan.experiment.decoder)
    draw(plan, trainer, model, np.asarray(state.alive), answers, found, note)


def _gives_up(folder: RunFolder) -> bool:
    """Return whether all attempts are used up, or else count one more. The size of the marker file is the count."""
    with suppress(OSError):
        begun = folder.artifacts_pending.stat().st_size + 1
        if begun < TRIES:
            folder.artifacts_pending.write_bytes(b"." * begun)
            return False
    _end(folder)
    return True


def _end(folder: RunFolder) -> None:
    """Remove the marker file."""
    with suppress(OSError):
        folder.artifacts_pending.unlink(missing_ok=True)


def _write(plan: Plan, name: str, value: Mapping[str, object] | None) -> None:
    if value is not None:
        plan.folder.write(name, dict(value))


def _answers(plan: Plan, answers: list, found: dict, note: Callable[[str], None]) -> None:
    """Write the answers on test of every seed at the chosen learning rate."""
    lanes = plan.experiment.train.lanes
    rows = {
        seed: plan.problem.rows("test", answers[lanes.index((seed, found["learning_rate"]))], examined(plan.quick))
        for seed in found["seeds"]
    }
    if cut := write_answers(plan.folder.file("answers"), rows, plan.problem.figure):
        note(f"{plan.variant}: {cut}")
