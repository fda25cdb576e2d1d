"""Train one variant, from its plan to its result."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from attnlab.console.errors import explain
from attnlab.lab.execution import artifacts
from attnlab.lab.execution.ahead import Ahead
from attnlab.lab.execution.artifacts import attempt, draw, draw_again, examined
from attnlab.lab.execution.result import rates_are_tied, result
from attnlab.lab.planning.ledger import Costs
from attnlab.lab.planning.plan import Plan, steps_after
from attnlab.lab.results.stalled import stalled
from attnlab.lab.results.tested import model_line
from attnlab.lab.results.ties import tie
from attnlab.lab.runs.environment_history import changed_at, continued
from attnlab.lab.runs.identity import checkpoints_of
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.runs.study_file import comparable_part
from attnlab.lab.study.user_code import codes, places
from attnlab.storage.json_file import folder_errors, sweep
from attnlab.storage.lock import LockedError, locked
from attnlab.system import freed_memory
from attnlab.system.environment import environment
from attnlab.system.signals import reached, set_location
from attnlab.training.averaging import tested_model
from attnlab.training.checkpoints import Checkpoints, Keep
from attnlab.training.loop import Fitted, fit
from attnlab.training.progress import Progress
from attnlab.training.trainer import VALIDATED, Trainer


def run_in_order(
    plans: Sequence[Plan], command: str, progress: Progress, workers: int = 1, shared: Path | None = None
) -> Exception | None:
    """Train the variants one after the other. If one fails, the failure is noted and the next begins.

    With several processes, each skips the variants that another one trains.

    Args:
        plans: the plans of all variants. Finished ones are skipped, unless their artifacts are still to be written.
        command: the command line that is recorded in each run.
        progress: the `Progress` listener.
        workers: the number of processes that share the variants.
        shared: a folder that these processes share. A variant that failed in one is not tried by another.

    Returns:
        The first error, or None. The frames of its traceback are cleared, so that the arrays of its variant are freed.
    """
    first, ahead = None, Ahead(plans if workers == 1 else (), progress)
    try:
        for plan in plans:
            if plan.done is not None and not plan.folder.artifacts_pending.exists():
                continue
            try:
                with set_location(partial(_reached, plan)), reserved(shared, plan):
                    run_variant(plan, plans, command, progress, ahead, workers)
            except Exception as error:
                if workers > 1 and isinstance(error, LockedError):
                    continue
                if len(plans) > 1:
                    progress.failed(plan.variant, explain(error)[0].removeprefix("attnlab: error: "))
                    vars(error)["variant"] = plan.variant  # tells the command line not to print the reason again
                traceback.clear_frames(error.__traceback__)
                first = first or error
            freed_memory.release()
    except BaseException:
        ahead.close(wait=False)
        raise
    ahead.close()
    return first


@contextmanager
def reserved(shared: Path | None, plan: Plan) -> Iterator[None]:
    """Reserve a variant among the processes that share a folder. If it fails, no other process tries it again.

    If a process is killed, the next one may take its variant.

    Args:
        shared: the shared folder, or None for a single process.
        plan: the plan of the variant.

    Raises:
        LockedError: if another process has the variant, or the variant has failed in one.
    """
    if shared is None:
        yield
        return
    place = shared / str(plan.order)
    place.mkdir(exist_ok=True)
    with locked(place):
        if (failed := place / "failed").exists():
            raise LockedError(f"variant {plan.variant} failed in another process of this command")
        try:
            yield
        except LockedError:  # another command trains the variant, which is no failure
            raise
        except Exception:
            failed.touch()
            raise


def run_variant(
    plan: Plan, plans: Sequence[Plan], command: str, progress: Progress, ahead: Ahead, workers: int = 1
) -> dict:
    """Train one variant from its last checkpoint to its result.

    Args:
        plan: the plan of the variant.
        plans: the plans of all variants, for the estimate of the time left.
        command: the command line that is recorded in the run.
        progress: the `Progress` listener.
        ahead: creates the trainer, and computes in the background what is needed next.
        workers: the number of processes that share the variants, for the same estimate.

    Returns:
        The content of `result.json`. If it exists already, nothing is trained.

    Raises:
        LockedError: if another process trains in the folder.
        Interrupted: on a signal, after saving.
    """
    folder, train = plan.folder, plan.experiment.train
    with folder_errors(folder.path):
        folder.path.mkdir(parents=True, exist_ok=True)
    with locked(folder.path, progress.note) as held:
        sweep(folder.path)
        if (done := folder.read("result")) is not None:
            # Another process has finished the run, possibly without writing its artifacts.
            if folder.artifacts_pending.exists():
                draw_again(plan, done, progress.note)
            return done
        write_description(plan, command)
        trainer = ahead.trainer(plan)
        if trainer.sharding is not None:
            progress.note(f"{plan.variant}: {trainer.sharding}")
        keep = Keep(train.keep_last, train.keep_best, train.keep_every)
        checkpoints = checkpoints_of(folder, plan.problem.fingerprint, keep=keep, note=progress.note)
        before, later = max(checkpoints.steps(), default=0), steps_after(plans, plan, workers)
        progress.variant(plan.variant, plan.order, len(plans), train.steps, before, later)
        begin = partial(resume, folder, progress)
        fitted = fit(trainer, checkpoints, partial(_record, held, folder), begin, progress)
        answers, found = _examined(plan, trainer, fitted, ahead, progress.note)
        held()
        # Write the result before the artifacts, so that a failure in drawing cannot lose it.
        artifacts.begin(folder)
        folder.write("result", found)
        draw(plan, trainer, fitted.model, np.asarray(fitted.state.alive), answers, found, progress.note)
        progress.finished()
    return found


def _record(held: Callable[[], None], folder: RunFolder, rows: list[dict]) -> None:
    """Append the rows of a dispatch, after checking that the lock is still held."""
    held()
    folder.append_metrics(rows)


def _reached(plan: Plan) -> str:
    """Describe the last checkpoint of a variant that is interrupted."""
    return reached(max(Checkpoints(plan.folder.path / "checkpoints").steps(), default=0))


def clear(folder: Path) -> None:
    """Empty a run folder, except for the lock. `experiment.json`, which identifies the run, is removed last."""
    with folder_errors(folder):
        for path in sorted(folder.iterdir(), key=lambda path: path.name == "experiment.json"):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()


def write_description(plan: Plan, command: str) -> None:
    """Write `experiment.json`, `vocabulary.json` and `environment.json` before the first step, unless they exist."""
    if plan.folder.read("experiment") is None:
        plan.folder.write("experiment", {
            "study": plan.study.name, "question": plan.study.question, "variant": plan.variant,
            "quick": plan.quick, "command": command, "fingerprint": plan.problem.fingerprint,
            "notes": list(plan.problem.notes),
            "match": plan.study.match, "budget": plan.study.budget,
            "comparable_part": comparable_part(plan.experiment.task),
            "experiment": plan.written, "code": codes(plan.written), "own": places(plan.written),
        })  # fmt: skip
    # Their checksums include `experiment.json`, so they are written after it.
    for name, value in {"vocabulary": lambda: plan.problem.vocabulary, "environment": environment}.items():
        if plan.folder.read(name) is None:
            plan.folder.write(name, value())


def resume(folder: RunFolder, progress: Progress, step: int) -> None:
    """Prepare a folder to resume at a step: truncate the metrics, and record a changed environment.

    Args:
        folder: The folder of the variant.
        progress: Receives notes about what is missing or has changed.
        step: The step of the checkpoint to resume from.
    """
    if step and not folder.file("metrics").exists():
        progress.note(f"{folder.file('metrics')} is missing; the run continues without its rows up to step {step}")
    else:
        folder.truncate_metrics(step)
    before = folder.read("environment") or {}
    if (record := continued(before, environment(), step)) != before:
        folder.write("environment", record)
        if changes := changed_at(record, step):
            progress.note(f"continues from step {step} with {changes}; the result is no longer bit-identical")


def _examined(
    plan: Plan, trainer: Trainer, fitted: Fitted, ahead: Ahead, note: Callable[[str], None]
) -> tuple[list, dict]:
    """Evaluate all lanes on test. Returns their answers and the result."""
    experiment, problem = plan.experiment, plan.problem
    valid = trainer.evaluate(fitted.model, "valid", VALIDATED) if len(experiment.train.rates) > 1 else None
    losses = None
    if rates_are_tied(experiment, problem, fitted, valid):
        lost = f"{plan.variant}: the loss on validation cannot be computed"
        compute = partial(trainer.losses, fitted.model, "valid", VALIDATED)
        losses = attempt(compute, lost, "ties between learning rates are not broken", note)
    limit = examined(plan.quick)
    answers = trainer.answers(fitted.model, "test", limit, experiment.decoder)
    test = trainer.scores("test", answers, limit)
    last = None
    if tested_model(experiment.train) != "last":
        last = trainer.evaluate(fitted.state.model, "test", limit, experiment.decoder)
    examples = problem.count_scored("test", limit)
    found = result(experiment, problem, fitted, valid, test, examples, _costs(plan, ahead, note), losses, last)
    patience = experiment.train.patience
    still = stalled(found, plan.folder.metrics(), patience) if patience and found["stopped"] else []
    for line in (tie(found), model_line(found), *still):
        if line:
            note(f"{plan.variant}: {line}")
    return answers, found


def _costs(plan: Plan, ahead: Ahead, note: Callable[[str], None]) -> Costs | dict[str, None]:
    """Return the costs of the variant, or None for each if they cannot be counted."""
    count = partial(ahead.costs, plan)
    lost = f"{plan.variant}: the costs cannot be computed"
    counted = attempt(count, lost, "the result is complete", note)
    return counted or {"parameters": None, "flops": None, "state_bytes": None}
