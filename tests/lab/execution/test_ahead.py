"""Tests which programs a run compiles in the background, and that this changes no result."""

from concurrent.futures import Future

import pytest

from attnlab.lab import run
from attnlab.lab.execution import ahead
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.training.trainer import Trainer
from tests.lab.noted import Noted
from tests.lab.small_study import QUICKLY


class Compiling(Noted):
    """Records the compilations that the training waits for, by variant."""

    def __init__(self):
        super().__init__()
        self.compilations = {}

    def variant(self, name, *rest):
        self.compilations[name] = []

    def compiling(self, what):
        self.compilations[list(self.compilations)[-1]].append(what)


class AtOnce:
    """Calls a function when it is submitted."""

    def submit(self, function):
        future = Future()
        try:
            future.set_result(function())
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self, wait=True):
        pass


def trained(folder, progress):
    """Returns the metrics, answers and costs of each variant."""
    found = run(QUICKLY, folder, progress=progress)
    folders = [RunFolder(found.folder / name) for name in ("softmax", "linear")]
    kept = ("metrics", "parameters", "flops", "state_bytes")
    return [({name: each.read("result")[name] for name in kept}, each.file("answers").read_text()) for each in folders]


@pytest.fixture
def alone(tmp_path, monkeypatch):
    monkeypatch.setattr(ahead, "cores", lambda: [0])
    progress = Compiling()
    found = trained(tmp_path / "alone", progress)
    assert all(len(compiled) == 2 for compiled in progress.compilations.values())
    monkeypatch.setattr(ahead, "cores", lambda: [0, 1])
    return found


def test_the_second_variant_waits_for_no_compilation(tmp_path, monkeypatch, alone):
    monkeypatch.setattr(ahead, "Background", AtOnce)
    progress = Compiling()
    assert trained(tmp_path, progress) == alone
    assert [len(compiled) for compiled in progress.compilations.values()] == [1, 0]


def test_the_results_are_those_of_one_thread(tmp_path, alone):
    assert trained(tmp_path, Compiling()) == alone


def test_what_fails_in_the_background_is_done_again(tmp_path, monkeypatch, alone):
    class Failing(AtOnce):
        def submit(self, function):
            future = Future()
            future.set_exception(MemoryError())
            return future

    monkeypatch.setattr(ahead, "Background", Failing)
    progress = Compiling()
    again = trained(tmp_path, progress)
    assert [found["metrics"] for found, _ in again] == [found["metrics"] for found, _ in alone]
    assert all(len(compiled) == 2 for compiled in progress.compilations.values())


def test_a_next_variant_that_cannot_be_prepared_fails_by_itself(tmp_path, monkeypatch):
    """Checks that the variant before it still trains to its last step."""
    real = Trainer.compile_ahead

    def failing(trainer, background, training, limit=512):
        if training:
            raise ValueError("no validation data")
        real(trainer, background, training, limit)

    monkeypatch.setattr(ahead, "cores", lambda: [0, 1])
    monkeypatch.setattr(Trainer, "compile_ahead", failing)
    assert len(trained(tmp_path, Compiling())) == 2
