"""Running a study: every variant and lane, each in its folder, resumed where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from attnlab.lab.execution.artifacts import attempt
from attnlab.lab.execution.progress_notebook import unasked
from attnlab.lab.execution.variant import clear, run_in_order
from attnlab.lab.execution.workers import share, sources
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
from attnlab.system import settings
from attnlab.system.signals import UNBEGUN, located
from attnlab.tasks.base.task import TaskData

PREVIEWED = 4  # variants of a preview at most


@dataclass(frozen=True)
class Results:
    """A finished study: its folder, its page, and the exit code (5 where lanes diverged, 4 without a page).

    `report` is None where the page could not be made; the results are complete then too.

    In a notebook each part of the page is drawn where it is asked for; printed, it is text.
    """

    folder: Path
    report: Path | None
    code: int

    def table(self) -> Inline:
        """The numbers of every variant."""
        return notebook.table(self.folder)

    def verdicts(self) -> Inline:
        """The answer in words, over a drawing of the headline metric."""
        return notebook.verdicts(self.folder)

    def curves(self) -> Inline:
        """Loss and the headline metric on validation, step by step."""
        return notebook.curves(self.folder)

    def maps(self) -> Inline:
        """Where each variant looks, with sliders over layer, head and example."""
        return notebook.maps(self.folder)


def run(
    study: Study,
    out: str | Path = "runs",
    *,
    quick: bool = False,
    fresh: bool = False,
    workers: int = 1,
    progress: Any = None,
    command: str = "",
) -> Results:
    """Train every variant of a study that is not done yet, and write its page.

    `quick` takes the study's own preview; `fresh` drops what stands in the folders; `workers` is how many processes
    share the variants; `progress` is told where it stands (None: a line in a notebook, elsewhere nothing). Nothing is
    written before every variant has been checked. Raises ValueError for what is in no registry, for a folder that
    holds another configuration, and for classes of a notebook that several processes were to share (`sources`),
    DataError for a folder that was made from other data, LockedError for one in which another process trains,
    FolderError for what is broken, WorkerError where a process of these failed.
    """
    check_study(study)
    if workers < 1:
        raise ValueError(f"{workers=} must be at least 1")
    settings.check(training=True)
    if progress is None:
        with closing(unasked()) as progress:
            return run(study, out, quick=quick, fresh=fresh, workers=workers, progress=progress, command=command)
    home, found = _prepared(study, out, quick, fresh, workers, progress)
    waiting = [plan for plan in found if plan.done is None]
    try:
        if min(workers, len(waiting)) > 1:
            share(found, min(workers, len(waiting)), home, command, progress)
        elif failed := run_in_order(found, command, progress):
            raise failed
    except Exception:
        if any(plan.folder.file("result").exists() for plan in found) and (page := _page(home, progress.note)):
            progress.note(f"report of what is done: {page}")
        raise
    diverged = sum(len(result(plan)["diverged"]) for plan in found)
    page = _page(home, progress.note)
    return Results(home, page, 5 if diverged else 4 if page is None else 0)


def _page(home: Path, note: Callable[[str], None]) -> Path | None:
    """The page of a study; where none can be made None, and a note."""
    again = f"all results are kept, and attnlab report {home} makes it"
    return attempt(partial(report, home), "the page could not be made", again, note)


@located(lambda: UNBEGUN)
def _prepared(
    study: Study, out: str | Path, quick: bool, fresh: bool, workers: int, progress: Any
) -> tuple[Path, list[Plan]]:
    """The study's folder, cleared of what goes, and a plan for every variant; what there is to know of them is told."""
    told = [*study.notes]
    if quick:
        study, whole, some = preview(study), study, ""
        if (few := len(study.variants())) < (every := len(whole.variants())):
            some = f", of {few} of the {every} variants, evenly taken"
        told += [f"a preview of a few steps{some}: its numbers mean nothing"]
    for experiment in study.variants(quick).values():
        serialize.write(experiment)  # what could not be read back is refused before anything is loaded or measured
    home = Path(out) / check_folder_name(study.name or "study")
    if quick and not _begun(home):
        study = replace(study, part_of=None)  # no more is to come
    problems: dict[Any, TaskData] = {}
    # What is left out was measured, too: it keeps its steps.
    all_of_them = (study.part_of or study).variants().keys() <= study.variants().keys()
    watch = Stopwatch(home, progress.note, fresh and all_of_them) if study.budget == "seconds" else None
    with progress.waiting("checking every variant"):
        solved = matched(study, Ledger(problems, clock=watch), quick)
        found = plans(study, solved.experiments, home, problems, quick=quick, fresh=fresh)
    check_unlocked(found, progress.note)
    if workers > 1:
        sources(found)  # what the processes cannot know is refused before anything is written
    if watch is not None:
        watch.keep()
    changed = study_file.write_study_file(home, study, quick, fresh)
    cold = warmups(solved.experiments)
    notes = dict.fromkeys(note for plan in found for note in plan.problem.notes)
    # Not before: where the study is refused, that is the only line.
    for line in [*told, *changed, *solved.lines, *cold, *notes]:
        progress.note(line)
    for plan in found:
        if plan.done:
            progress.note(f"{plan.variant}: already finished, in {plan.folder.path}")
    for plan in found:
        # All at once: who is stopped on the way goes on without them.
        if plan.clear:
            with locked(plan.folder.path):
                clear(plan.folder.path)
    return home, found


def result(plan: Plan) -> dict:
    """What a variant came to; FolderError where there is nothing."""
    if (found := plan.folder.read("result")) is None:
        raise FolderError(f"{plan.folder.path}: no worker left a result here; the same command tries again")
    return found


def _begun(home: Path) -> bool:
    """Whether a folder of a study holds a run that is no preview: what the study says of it must stay."""
    for path in home.glob("*/experiment.json"):
        with suppress(FolderError):
            if (found := RunFolder(path.parent).read("experiment")) is not None and not found["quick"]:
                return True
    return False


def preview(study: Study) -> Study:
    """The study itself; of more variants than compile in a minute or two some, evenly taken, the first among them."""
    if study.vary is not None and (count := len(study.vary.variants)) > PREVIEWED:
        names = list(study.vary.variants)
        kept = [names[n * count // PREVIEWED] for n in range(PREVIEWED)]
        study = study.keeping(Variation({name: study.vary.variants[name] for name in kept}))
    return study
