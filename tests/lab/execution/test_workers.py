"""Several processes that share the variants of a study."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from io import StringIO
from types import SimpleNamespace
from typing import ClassVar

import jax
import numpy as np
import pytest

import attnlab
from attnlab.console.errors import explain
from attnlab.lab import run
from attnlab.lab.execution import worker, workers
from attnlab.lab.execution.variant import reserved
from attnlab.lab.execution.workers import WorkerError, _shares, _signals
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.load import ADDED, load_study
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import Variation
from attnlab.storage.lock import LockedError
from attnlab.system.signals import Interrupted
from tests.lab.noted import Noted
from tests.small import EXPERIMENT, TINY

BASE = change(EXPERIMENT, **TINY)
VARY = Variation({"a": {}, "b": {"train.warmup": 3}, "c": {"train.warmup": 4}})
STUDY = Study(BASE, VARY, name="shared", question="Which?")


def folder(out, variant):
    return RunFolder(out / "shared" / variant)


def losses(out, variant):
    return [row["loss"] for row in folder(out, variant).metrics()]


def test_workers_write_the_same_files_as_one_process(tmp_path):
    progress = Noted()
    results = run(STUDY, tmp_path / "two", workers=2, progress=progress, command="attnlab run shared.py")
    assert results.code == 0
    assert results.report.is_file()
    assert progress.notes[0] == "2 processes share 3 variants"
    alone = run(STUDY, tmp_path / "one", command="attnlab run shared.py")
    for order, variant in enumerate("abc"):
        assert any(line.startswith(f"{variant}: variant {order + 1} of 3, 24 steps") for line in progress.notes)
        # Processes share the cores. With another number of cores, sums may be taken in another order.
        np.testing.assert_allclose(losses(tmp_path / "two", variant), losses(tmp_path / "one", variant), rtol=1e-5)
        two, one = (folder(tmp_path / out, variant).read("experiment") for out in ("two", "one"))
        assert two == one
    assert {path.name for path in results.folder.iterdir()} == {path.name for path in alone.folder.iterdir()}
    again = Noted()
    run(STUDY, tmp_path / "two", workers=2, progress=again)
    assert again.notes == [f"{name}: already finished, in {folder(tmp_path / 'two', name).path}" for name in "abc"]


def test_workers_receive_the_jax_settings_of_this_process(tmp_path, monkeypatch):
    """Checks that this includes settings made by a call instead of an environment variable."""
    process = replace_workers(monkeypatch)
    with jax.enable_x64(True), jax.default_matmul_precision("float32"), pytest.raises(WorkerError):
        run(STUDY, tmp_path, workers=2)
    assert process.input["jax"]["jax_enable_x64"] is True
    assert process.input["jax"]["jax_default_matmul_precision"] == "float32"


def test_workers_receive_file_names_that_the_locale_does_not_encode(tmp_path, monkeypatch):
    process = replace_workers(monkeypatch)
    out = tmp_path / "f\udcc3\udcbcr"  # "für" in an ASCII locale
    with pytest.raises(WorkerError):
        run(STUDY, out, workers=2, command=f"attnlab run {out}")
    assert process.input["home"] == str(out / "shared")
    assert process.input["command"] == f"attnlab run {out}"


class FakeProcess:
    """A process that records its instructions and fails."""

    def __call__(self, *arguments, **options):
        self.stdin, self.stderr, self.returncode, self.options = self, StringIO(), 1, options
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def write(self, text):
        self.input = json.loads(text.encode(self.options["encoding"], self.options["errors"]))

    def wait(self):
        return 1

    def poll(self):
        return 1


def replace_workers(monkeypatch):
    """Replaces the worker processes, and no other child process, by a `FakeProcess` and returns it."""
    process = FakeProcess()
    fake = SimpleNamespace(Popen=process, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(workers, "subprocess", fake)
    return process


OWN = """
from dataclasses import dataclass

import attnlab
from attnlab.lab.study import Experiment, Study, change
from attnlab.lab.study.variation import Variation
from attnlab.mechanisms import Linear, Mechanism, Wrapper
from tests.lab.execution.test_workers import BASE


@dataclass(frozen=True)
class Mine(Wrapper):
    mechanism: Mechanism = Linear()


attnlab.MECHANISMS["of-this-file"] = Mine()
study = Study(change(BASE, **{"model.mechanism": Mine()}), Variation({"a": {}, "b": {"train.warmup": 3}}))
"""


def test_workers_know_what_an_experiment_file_defines(tmp_path, monkeypatch):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    tables = dict(attnlab.MECHANISMS)
    study = load_study(file)
    try:
        assert run(study, tmp_path / "runs", workers=2).code == 0
        # Workers cannot import what a notebook defines. The run is then refused, and nothing is written.
        monkeypatch.setattr(type(study.base.model.mechanism), "__module__", "__main__")
        monkeypatch.delitem(ADDED, ("MECHANISMS", "of-this-file"))
        with pytest.raises(
            ValueError, match=r"^workers: 'of-this-file' of attnlab.MECHANISMS is defined in __main__, "
        ):
            run(study, tmp_path / "others", workers=2)
        assert not (tmp_path / "others").exists()
    finally:
        for name in attnlab.MECHANISMS.keys() - tables.keys():
            del attnlab.MECHANISMS[name]


SET = """
import attnlab
from attnlab.lab.study import Study, change
from attnlab.lab.study.variation import Variation
from attnlab.mechanisms import Linear
from tests.lab.execution.test_workers import BASE

attnlab.MECHANISMS["set-otherwise"] = Linear(block=3)
study = Study(change(BASE, **{"model.mechanism": Linear(block=3)}), Variation({"a": {}, "b": {"train.warmup": 3}}))
"""


def test_workers_know_a_registry_entry_of_a_file_whose_class_is_attnlab_s(tmp_path):
    file = tmp_path / "set.py"
    file.write_text(SET)
    study = load_study(file)
    try:
        assert run(study, tmp_path / "runs", workers=2).code == 0
    finally:
        del attnlab.MECHANISMS["set-otherwise"]


def test_a_worker_stopped_outside_of_training_prints_one_line(monkeypatch, capsys):
    monkeypatch.setattr(worker, "work", lambda told, progress: os.kill(os.getpid(), signal.SIGINT) or time.sleep(9))
    monkeypatch.setattr("sys.stdin", StringIO("{}"))
    monkeypatch.setattr("sys.argv", ["worker"])
    assert worker.main() == 130
    assert capsys.readouterr().err == "attnlab: stopped by SIGINT after the last step, which is saved\n"


def test_a_failed_variant_is_reported_and_the_others_are_trained(tmp_path, monkeypatch):
    study = Study(BASE, Variation(VARY.variants | {"d": {"train.warmup": 5}}), name="shared")
    # The lock of "b" is a folder instead of a file, so no process can train this variant.
    (folder(tmp_path, "b").path / "lock").mkdir(parents=True)
    monkeypatch.setattr("attnlab.lab.launch.check_unlocked", lambda plans, note: None)
    progress = Noted()
    with pytest.raises(WorkerError, match=r"^\S+b/lock: Is a directory$") as failed:
        run(study, tmp_path, workers=2, progress=progress)
    assert failed.value.exit_code == 4
    # Both processes reach the variant, but only one tries it. The last line of a command names the variant alone.
    (line,) = [line for line in progress.notes if "Is a directory" in line]
    assert line.endswith(f"variant b failed: {failed.value}")
    assert failed.value.variant == "b"
    assert [variant for variant in "abcd" if folder(tmp_path, variant).read("result") is None] == ["b"]
    (folder(tmp_path, "b").path / "lock").rmdir()
    assert run(study, tmp_path).code == 0


def test_a_failed_variant_is_not_tried_by_other_processes_of_the_command(tmp_path):
    plan = SimpleNamespace(order=1, variant="b")
    with pytest.raises(ZeroDivisionError), reserved(tmp_path, plan):
        raise ZeroDivisionError
    with pytest.raises(LockedError, match=r"^variant b failed in another process of this command$"):
        reserved(tmp_path, plan).__enter__()
    # Other variants are not affected, and neither is the same variant in the folder of another command.
    (tmp_path / "next").mkdir()
    with reserved(tmp_path, SimpleNamespace(order=0, variant="a")), reserved(tmp_path / "next", plan):
        pass


def test_a_locked_variant_has_not_failed(tmp_path):
    plan = SimpleNamespace(order=0, variant="a")
    with pytest.raises(LockedError, match="held elsewhere"), reserved(tmp_path, plan):
        raise LockedError("held elsewhere")
    with reserved(tmp_path, plan), pytest.raises(LockedError, match="is locked by process"):
        reserved(tmp_path, plan).__enter__()


def test_a_killed_process_is_reported_and_the_others_continue(tmp_path):
    def kill():
        lock = folder(tmp_path, "a").path / "lock"
        while not (lock.exists() and (found := re.match(r"process (\d+) on ", lock.read_text()))):
            time.sleep(0.01)
        os.kill(int(found[1]), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    with pytest.raises(WorkerError, match=r"^a process was killed by SIGKILL; its last message: \S") as failed:
        run(STUDY, tmp_path, workers=2)
    line, code = explain(failed.value)
    assert line.startswith("attnlab: error: a process was killed")
    assert code == 128 + signal.SIGKILL
    assert all(folder(tmp_path, variant).read("result") for variant in "bc")


def test_a_signal_reaches_the_workers_which_save(tmp_path):
    study = Study(change(BASE, **{"train.steps": 10**6}), STUDY.vary, name="shared")

    def stop():
        while not all((folder(tmp_path, variant).path / "checkpoints").exists() for variant in "ab"):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    with pytest.raises(Interrupted, match=r"stopped by SIGTERM .*at step [0-9]+, which is saved") as stopped:
        run(study, tmp_path, workers=2)
    assert stopped.value.exit_code == 143
    for variant in "ab":
        steps = [row["step"] for row in folder(tmp_path, variant).metrics()]
        assert (folder(tmp_path, variant).path / "checkpoints" / str(max(steps))).is_dir()
        assert json.loads(folder(tmp_path, variant).file("experiment").read_text())["variant"] == variant


@pytest.mark.parametrize("workers", [0, -1])
def test_workers_must_be_positive(tmp_path, workers):
    with pytest.raises(ValueError, match=rf"^workers={workers} must be at least 1$"):
        run(STUDY, tmp_path, workers=workers)


def test_cores_are_divided_evenly(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3, 7}, raising=False)
    assert _shares(2) == [{0, 2, 7}, {1, 3}]
    assert _shares(6)[5] == set()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM], ids=lambda number: number.name)
def test_every_stop_signal_is_passed_on_to_the_workers(number):
    class Process:
        sent: ClassVar[list] = []

        def poll(self):
            return None

        def send_signal(self, number):
            self.sent.append(number)

    with _signals([SimpleNamespace(process=Process())]):
        os.kill(os.getpid(), number)
        assert Process.sent == [number]
