"""A run that continues reports its step and the changes of its environment."""

import signal
from dataclasses import replace

import pytest

from attnlab.lab import run
from attnlab.lab.planning.summary import show
from attnlab.lab.runs.run_folder import FolderError, RunFolder
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import over
from attnlab.system.environment import environment
from attnlab.system.signals import Interrupted
from attnlab.tasks.synthetic.associations import Associations
from tests.lab.noted import Noted
from tests.small import EXPERIMENT, TINY

STUDY = Study(change(EXPERIMENT, **TINY), name="moved")


class Stopping(Noted):
    """Raises an error when the checkpoint of `step` is saved."""

    def __init__(self, step=None):
        super().__init__()
        self.step = step

    def saved(self, step):
        if step == self.step:
            raise RuntimeError("stopped here")


def stopped(out, step):
    with pytest.raises(RuntimeError, match="stopped here"):
        run(STUDY, out, progress=Stopping(step))


def test_a_changed_environment_is_recorded_noted_and_on_the_page(tmp_path, monkeypatch):
    first, folder = environment(), RunFolder(tmp_path / "moved" / "base")
    stopped(tmp_path, 8)
    assert folder.read("environment") == first
    stopped(tmp_path, 16)
    assert folder.read("environment") == first, "nothing changed"
    other = first | {"jax": "99.1", "cores": 77}
    monkeypatch.setattr("attnlab.lab.execution.variant.environment", lambda: other)
    progress = Stopping()
    page = run(STUDY, tmp_path, progress=progress).report.read_text()
    assert folder.read("environment") == first | {"later": [{"step": 16, **other}]}
    (note,) = [line for line in progress.notes if line.startswith("continues")]
    changed = f"jax 99.1 (was {first['jax']}), cores 77 (was {first['cores']})"
    assert note == f"continues from step 16 with {changed}; the result is no longer bit-identical"
    assert f"<td>{first['jax']}; from step 16: 99.1</td>" in page
    assert "<th scope=row>python</th><td>" in page.replace('"', "")


def test_notes_on_the_data_are_in_the_folder_on_the_page_and_in_show(tmp_path, monkeypatch):
    # The task loads its own data and adds two notes on it.
    load, said = Associations.load, ("3 of 20 stand in both parts", "<b>none</b> is left out")

    def told(task):
        problem = load(task)
        problem.notes = said
        return problem

    monkeypatch.setattr(Associations, "load", told)
    page = run(STUDY, tmp_path).report.read_text()
    assert RunFolder(tmp_path / "moved" / "base").read("experiment")["notes"] == [*said]
    assert page.count("<li>3 of 20 stand in both parts</li><li>&lt;b&gt;none&lt;/b&gt; is left out</li>") == 1
    assert show(STUDY).endswith("\n\n" + "\n".join(said))


def test_only_data_that_a_variant_reads_are_noted(tmp_path, monkeypatch):
    load = Associations.load

    def told(task):
        problem = load(task)
        problem.notes = (f"drawn with seed {task.seed}",)
        return problem

    monkeypatch.setattr(Associations, "load", told)
    other = replace(STUDY, vary=over("task.seed", one=1, two=2), match="parameters")
    progress = Stopping()
    run(other, tmp_path, quick=True, progress=progress)
    for lines in (progress.notes, show(other).splitlines()):
        assert [line for line in lines if "drawn with" in line] == ["drawn with seed 1", "drawn with seed 2"]


def test_a_run_that_restarts_at_step_0_records_the_present_environment(tmp_path, monkeypatch):
    class Early(Stopping):
        def advanced(self, step, loss, steps_per_second=None):
            raise RuntimeError("stopped here")

    with pytest.raises(RuntimeError, match="stopped here"):
        run(STUDY, tmp_path, progress=Early())
    other = environment() | {"jax": "99.1"}
    monkeypatch.setattr("attnlab.lab.execution.variant.environment", lambda: other)
    progress = Stopping()
    run(STUDY, tmp_path, progress=progress)
    assert RunFolder(tmp_path / "moved" / "base").read("environment") == other
    assert not [line for line in progress.notes if line.startswith("continues")]


def test_an_interruption_names_the_saved_step(tmp_path, monkeypatch):
    def killed(plan, *rest):
        raise Interrupted(signal.SIGINT, "anywhere")

    stopped(tmp_path, 16)
    monkeypatch.setattr("attnlab.lab.execution.variant.run_variant", killed)
    with pytest.raises(Interrupted, match=r"^stopped by SIGINT at step 16, which is saved$"):
        run(STUDY, tmp_path)
    with pytest.raises(Interrupted, match=r"^stopped by SIGINT before the first step$"):
        run(STUDY, tmp_path / "other")


@pytest.mark.parametrize("lost", ["all", "metrics.jsonl", "checkpoints"])
def test_files_removed_during_training(tmp_path, lost):
    """A removed run folder is not created again. A run without its metrics continues."""
    folder = RunFolder(tmp_path / "moved" / "base")

    class Losing(Stopping):
        def saved(self, step):
            if step == 8:
                (tmp_path / "moved" if lost == "all" else folder.path / lost).rename(tmp_path / "away")
            if lost == "metrics.jsonl":
                super().saved(step)

    if lost == "all":
        with pytest.raises(FolderError, match=r"moved/base was moved or removed during training, so nothing more"):
            run(STUDY, tmp_path, progress=Losing())
        assert [path.name for path in tmp_path.iterdir()] == ["away"]
        (tmp_path / "away").rename(tmp_path / "moved")
    elif lost == "metrics.jsonl":
        with pytest.raises(RuntimeError, match="stopped here"):
            run(STUDY, tmp_path, progress=Losing(8))
    progress = Losing()
    assert run(STUDY, tmp_path, progress=progress).code == 0
    gone = [note for note in progress.notes if "is missing; the run continues without its rows up to step 8" in note]
    assert len(gone) == (lost == "metrics.jsonl")
    assert folder.metrics()[-1]["step"] == 24
