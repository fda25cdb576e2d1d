"""One variant from its plan to its result."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.lab import drawing
from attnlab.lab.describe import costs
from attnlab.lab.drawing import attempt, draw, draw_again, examined
from attnlab.lab.folder import RunFolder, environment
from attnlab.lab.jsonfile import named, sweep
from attnlab.lab.loading import saved
from attnlab.lab.lock import LockedError, locked
from attnlab.lab.own import codes, places
from attnlab.lab.plan import Plan, ahead
from attnlab.lab.refusal import explain
from attnlab.lab.result import result, undecided
from attnlab.lab.stalled import stalled
from attnlab.lab.studyfile import asked
from attnlab.lab.tested import model_line
from attnlab.lab.ties import tie
from attnlab.lab.versions import exchanged, onward
from attnlab.training.averaging import tested_model
from attnlab.training.checkpoints import Checkpoints, Keep
from attnlab.training.loop import Fitted, fit
from attnlab.training.signals import located, reached
from attnlab.training.trainer import Trainer


def in_turn(
    plans: Sequence[Plan], command: str, progress: Any, workers: int = 1, shared: Path | None = None
) -> Exception | None:
    """Train variant after variant, each where nobody has yet; one that fails is noted, and the next begins.

    Answers the first error, whose frames let go of the arrays of their variant. Of several processes, each leaves out
    what another trains. `shared` is a folder of theirs: a variant that failed in one of them is not tried by the next.
    """
    first = None
    for plan in plans:
        if plan.done is not None and not plan.folder.undrawn.exists():
            continue
        try:
            with located(partial(_reached, plan)), once(shared, plan):
                conduct(plan, plans, command, progress, workers)
        except Exception as error:
            if workers > 1 and isinstance(error, LockedError):
                continue
            if len(plans) > 1:
                progress.note(f"variant {plan.variant} failed: {explain(error)[0].removeprefix('attnlab: error: ')}")
                vars(error)["variant"] = plan.variant  # so that the reason is not printed again at the end
            traceback.clear_frames(error.__traceback__)
            first = first or error
    return first


@contextmanager
def once(shared: Path | None, plan: Plan) -> Iterator[None]:
    """Hold a variant among the processes that share a folder; where it fails, none of them tries it again.

    Raises LockedError where another process has the variant, or it failed in one. A process that was killed leaves the
    variant to the next one.
    """
    if shared is None:
        yield
        return
    place = shared / str(plan.order)
    place.mkdir(exist_ok=True)
    with locked(place):
        if (failed := place / "failed").exists():
            raise LockedError(f"variant {plan.variant} has failed in another process of this command")
        try:
            yield
        except LockedError:  # another command trains it: that is no failure
            raise
        except Exception:
            failed.touch()
            raise


def conduct(plan: Plan, plans: Sequence[Plan], command: str, progress: Any, workers: int = 1) -> dict:
    """Train one of a study's variants to its result, from where it stands; what is done already is not done again.

    `plans` are those of all variants, and `workers` how many processes share them: so long is the way from here.

    Raises LockedError where another process trains in its folder, Interrupted on a signal, after saving.
    """
    folder, train = plan.folder, plan.experiment.train
    with named(folder.path):
        folder.path.mkdir(parents=True, exist_ok=True)
    with locked(folder.path, progress.note) as held:
        sweep(folder.path)
        if (done := folder.read("result")) is not None:
            # Another process was faster, or one was stopped behind its result.
            if folder.undrawn.exists():
                draw_again(plan, done, progress.note)
            return done
        describe(plan, command)
        trainer = Trainer(
            lambda key: plan.experiment.model.create(key, plan.problem.shape), plan.problem, train,
            announce=progress.compiling, announced=progress.compiled,
        )  # fmt: skip
        if trainer.spread is not None:
            progress.note(f"{plan.variant}: {trainer.spread}")
        keep = Keep(train.keep_last, train.keep_best, train.keep_every)
        checkpoints = saved(folder, plan.problem.fingerprint, keep=keep, note=progress.note)
        before, later = max(checkpoints.steps(), default=0), ahead(plans, plan, workers)
        progress.variant(plan.variant, plan.order, len(plans), train.steps, before, later)
        begin = partial(go_on, folder, progress)
        fitted = fit(trainer, checkpoints, partial(_record, held, folder), begin, progress)
        answers, found = _examined(plan, trainer, fitted, progress.note)
        held()
        # The result comes first: nothing that is only looked at may cost it.
        drawing.begin(folder)
        folder.write("result", found)
        draw(plan, fitted.model, np.asarray(fitted.state.alive), answers, found, progress.note)
        progress.finished()
    return found


def _record(held: Callable[[], None], folder: RunFolder, rows: list[dict]) -> None:
    """Append rows of a dispatch, where the folder is still the one that was locked."""
    held()
    folder.append_metrics(rows)


def _reached(plan: Plan) -> str:
    """Where a variant stands that is stopped."""
    return reached(max(Checkpoints(plan.folder.path / "checkpoints").steps(), default=0))


def clear(folder: Path) -> None:
    """Empty the folder, except for the lock that is held; what says whose the rest is goes last."""
    with named(folder):
        for path in sorted(folder.iterdir(), key=lambda path: path.name == "experiment.json"):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()


def describe(plan: Plan, command: str) -> None:
    """Say what the folder is for, before the first step."""
    if plan.folder.read("experiment") is None:
        plan.folder.write("experiment", {
            "study": plan.study.name, "question": plan.study.question, "variant": plan.variant,
            "quick": plan.quick, "command": command, "fingerprint": plan.problem.fingerprint,
            "notes": list(plan.problem.notes),
            "match": plan.study.match, "budget": plan.study.budget, "asked": asked(plan.experiment.task),
            "experiment": plan.written, "code": codes(plan.written), "own": places(plan.written),
        })  # fmt: skip
    # Sealed as that run's.
    for name, value in {"vocabulary": lambda: plan.problem.vocabulary, "environment": environment}.items():
        if plan.folder.read(name) is None:
            plan.folder.write(name, value())


def go_on(folder: RunFolder, progress: Any, step: int) -> None:
    """Bring what the folder says to the step that training goes on from: the rows, and with what they were made."""
    if step and not folder.file("metrics").exists():
        progress.note(f"{folder.file('metrics')} is gone: the run continues without its rows up to step {step}")
    else:
        folder.truncate_metrics(step)
    before = folder.read("environment") or {}
    if (record := onward(before, environment(), step)) != before:
        folder.write("environment", record)
        if others := exchanged(record, step):
            progress.note(f"goes on from step {step} with {others}: no longer to the same bits")


def _examined(plan: Plan, trainer: Trainer, fitted: Fitted, note: Callable[[str], None]) -> tuple[list, dict]:
    """What every lane answers to the test, and the result."""
    experiment, problem = plan.experiment, plan.problem
    valid = trainer.evaluate(fitted.model, "valid", 512) if len(experiment.train.rates) > 1 else None
    losses = None
    if undecided(experiment, problem, fitted, valid):
        lost = f"{plan.variant}: the loss on validation cannot be computed"
        compute = partial(trainer.losses, fitted.model, "valid", 512)
        losses = attempt(compute, lost, "learning rates with one score are not told apart", note)
    limit = examined(plan.quick)
    answers = trainer.answers(fitted.model, "test", limit, experiment.decoder)
    test = trainer.scores("test", answers, limit)
    last = None
    if tested_model(experiment.train) != "last":
        last = trainer.evaluate(fitted.state.model, "test", limit, experiment.decoder)
    examples = problem.counted("test", limit)
    found = result(experiment, problem, fitted, valid, test, examples, _costs(plan, note), losses, last)
    patience = experiment.train.patience
    still = stalled(found, plan.folder.metrics(), patience) if patience and found["stopped"] else []
    for line in (tie(found), model_line(found), *still):
        if line:
            note(f"{plan.variant}: {line}")
    return answers, found


def _costs(plan: Plan, note: Callable[[str], None]) -> dict[str, Any]:
    """What the variant costs; None of each where it cannot be counted."""
    count = partial(costs, plan.experiment, plan.problem)
    lost = f"{plan.variant}: what it costs cannot be counted"
    return attempt(count, lost, "its result is complete", note) or dict.fromkeys(("parameters", "flops", "state_bytes"))
