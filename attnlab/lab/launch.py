"""Run a study: train every variant and lane in its own folder, and resume runs that were interrupted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from attnlab.documented import Documented
from attnlab.lab.execution.artifacts import attempt
from attnlab.lab.execution.progress import default_progress
from attnlab.lab.execution.variant import clear, run_in_order
from attnlab.lab.execution.worker_count import worker_count
from attnlab.lab.execution.worker_input import sources
from attnlab.lab.execution.workers import run_workers
from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.planning.matching import matched
from attnlab.lab.planning.plan import Plan, check_unlocked, plans
from attnlab.lab.planning.step_time import Stopwatch
from attnlab.lab.reporting import notebook, report
from attnlab.lab.reporting.notebook import Inline
from attnlab.lab.runs import study_file
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from attnlab.lab.study import serialize
from attnlab.lab.study.names import check_folder_name
from attnlab.lab.study.study import Study, check_study, warmups
from attnlab.lab.study.variation import Variation
from attnlab.storage.lock import locked
from attnlab.system import compilation_cache, settings
from attnlab.system.signals import UNBEGUN, set_location
from attnlab.tasks.base.task import Task, TaskData
from attnlab.training.progress import Progress

PREVIEWED = 4  # variants of a preview, at most


@dataclass(frozen=True)
class Results(metaclass=Documented):
    """A finished study: its folder, its page and its exit code.

    Each method returns a part of the page. A notebook draws it in place, and printing it gives text. The text of curves
    and maps only says where they are drawn.
    """

    folder: Path
    """The folder of the study, `OUT/<experiment>/`."""
    report: Path | None
    """The path of the page, or None if it could not be written. The results are complete in either case."""
    code: int
    """The exit code: 0 if all is well, 5 if lanes diverged, else 4 if the page could not be written."""

    def table(self) -> Inline:
        """Return the table of results, with a row for every variant."""
        return notebook.table(self.folder)

    def verdicts(self) -> Inline:
        """Return the verdicts in words, with a drawing of the primary metric."""
        return notebook.verdicts(self.folder)

    def curves(self) -> Inline:
        """Return the curves of the loss and of the primary metric on validation, by step."""
        return notebook.curves(self.folder)

    def maps(self) -> Inline:
        """Return the attention maps of each variant, with sliders for layer, head and example."""
        return notebook.maps(self.folder)


def run(
    study: Study,
    out: str | Path = "runs",
    *,
    quick: bool = False,
    fresh: bool = False,
    workers: int | None = 1,
    cache: bool = True,
    progress: Progress | None = None,
    command: str = "",
) -> Results:
    """Train every variant of a study that is not finished yet, and write the study's page.

    Nothing is written before every variant has been checked. A run that was interrupted continues from its last
    checkpoint.

    Args:
        study: the study to run.
        out: the folder that holds the study's folder.
        quick: whether to run the study's preview instead: a few steps of at most four variants.
        fresh: whether to delete existing runs of these variants first.
        workers: the number of processes that share the variants. None chooses it (`execution.worker_count`).
        cache: whether to keep compiled programs and counted FLOPs in the user's cache folder
            (`system.compilation_cache`).
        progress: the `Progress` listener. None shows one line in a notebook and nothing elsewhere.
        command: the command line that is recorded in each run.

    Returns:
        The results, with the folder, the page and the exit code.

    Raises:
        TypeError: if `study` is not a Study.
        ValueError: if a config is in no registry, if a folder holds another configuration, or if `workers` is below 1.
            Also if the margin or an expected value lies outside the range of the primary metric. Also if several
            workers would need a class that is defined in a notebook (`execution.worker_input.sources`).
        DataError: if a folder was made from other data.
        LockedError: if another process trains in one of the folders.
        FolderError: if a file of a run is damaged or missing.
        WorkerError: if one of the worker processes failed.
    """
    check_study(study)
    if workers is not None and workers < 1:
        raise ValueError(f"{workers=} must be at least 1")
    settings.check(training=True)
    if progress is None:
        with closing(default_progress()) as progress:
            how = {"quick": quick, "fresh": fresh, "workers": workers, "cache": cache, "command": command}
            return run(study, out, progress=progress, **how)
    if not cache:
        compilation_cache.disable()
    elif trouble := compilation_cache.enable():
        progress.note(trouble)
    home, found = _prepared(study, out, quick, fresh, workers or 1, progress)
    workers = min(workers or worker_count(found), len(found))
    waiting = [plan for plan in found if plan.done is None]
    try:
        if workers > 1 and waiting:
            run_workers(found, workers, home, command, progress)
        elif failed := run_in_order(found, command, progress):
            raise failed
    except Exception:
        if any(plan.folder.file("result").exists() for plan in found) and (page := _page(home, progress.note)):
            progress.note(f"report of the finished variants: {page}")
        raise
    diverged = sum(len(result(plan)["diverged"]) for plan in found)
    page = _page(home, progress.note)
    return Results(home, page, 5 if diverged else 4 if page is None else 0)


def _page(home: Path, note: Callable[[str], None]) -> Path | None:
    """Write the page of a study and return its path, or None with a note if that fails."""
    again = f"all results are kept, and attnlab report {home} writes it"
    return attempt(partial(report, home), "the page could not be written", again, note)


@set_location(lambda: UNBEGUN)
def _prepared(
    study: Study, out: str | Path, quick: bool, fresh: bool, workers: int, progress: Progress
) -> tuple[Path, list[Plan]]:
    """Check, match and plan every variant, then write `study.json` and clear folders that are to be replaced.

    Returns:
        The folder of the study, and a plan for every variant.
    """
    notes = [*study.notes]
    if quick:
        study, whole, some = preview(study), study, ""
        if (few := len(study.variants())) < (every := len(whole.variants())):
            some = f" and of {few} of the {every} variants"
        notes += [f"this is a preview of a few steps{some}; its numbers are not meaningful"]
    for experiment in study.variants(quick).values():
        serialize.write(experiment)  # refuses what could not be read back, before data are loaded or steps measured
    home = Path(out) / check_folder_name(study.name or "study")
    if quick and not _begun(home):
        # No real run relies on the other variants, and a preview is not compared with what is expected of them.
        study = replace(study, part_of=None, published={}, bands={})
    problems: dict[Task, TaskData] = {}
    # Times of variants that this run leaves out must stay, so measure anew only if all variants take part.
    all_of_them = (study.part_of or study).variants().keys() <= study.variants().keys()
    watch = Stopwatch(home, progress.note, fresh and all_of_them) if study.budget == "seconds" else None
    with progress.waiting("checking every variant"):
        solved = matched(study, Ledger(problems, clock=watch), quick)
        found = plans(study, solved.experiments, home, problems, quick=quick, fresh=fresh)
    check_unlocked(found, progress.note)
    if workers > 1:
        sources(found)  # refuses, before anything is written, what the worker processes could not import
    if watch is not None:
        watch.keep()
    changed = study_file.write_study_file(home, study, quick, fresh)
    cold = warmups(solved.experiments)
    data_notes = dict.fromkeys(note for plan in found for note in plan.problem.notes)
    # Notes come only now, so that a study that is refused gives one line and nothing else.
    for line in [*notes, *changed, *solved.lines, *cold, *data_notes]:
        progress.note(line)
    for plan in found:
        if plan.done:
            progress.note(f"{plan.variant}: already finished, in {plan.folder.path}")
    for plan in found:
        # All folders are cleared together, before training: after an interruption none of them is cleared again.
        if plan.clear:
            with locked(plan.folder.path):
                clear(plan.folder.path)
    return home, found


def result(plan: Plan) -> dict:
    """Return the result of a variant. Raises FolderError if there is none."""
    if (found := plan.folder.read("result")) is None:
        raise FolderError(f"{plan.folder.path}: no worker wrote a result here; run the same command again")
    return found


def _begun(home: Path) -> bool:
    """Return whether a study's folder holds a run that is no preview, so that `study.json` must keep describing it."""
    for path in home.glob("*/experiment.json"):
        with suppress(FolderError):
            if (found := RunFolder(path.parent).read("experiment")) is not None and not found["quick"]:
                return True
    return False


def preview(study: Study) -> Study:
    """Return the study, reduced to `PREVIEWED` variants if it has more: evenly spaced ones, including the first."""
    if study.vary is not None and (count := len(study.vary.variants)) > PREVIEWED:
        names = list(study.vary.variants)
        kept = [names[n * count // PREVIEWED] for n in range(PREVIEWED)]
        study = study.keeping(Variation({name: study.vary.variants[name] for name in kept}))
    return study
