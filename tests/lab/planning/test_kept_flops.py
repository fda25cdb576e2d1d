"""The FLOPs of training steps are counted once and kept on disk."""

import jax
import pytest

import attnlab
from attnlab.lab.planning import kept_flops
from attnlab.lab.planning.ledger import Ledger, costs
from attnlab.lab.study.study import change
from attnlab.mechanisms import Softmax
from tests.small import EXPERIMENT

SHAPES = frozenset({("source", jax.ShapeDtypeStruct((4, 6), "int32"))})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Returns the folder of compiled programs."""
    monkeypatch.setattr(kept_flops.compilation_cache, "folder", lambda: tmp_path)
    return tmp_path


def counted(experiment=EXPERIMENT, shapes=SHAPES):
    """Returns whether the FLOPs of a batch are counted instead of read from disk."""
    calls = []
    found = kept_flops.batch_flops(experiment, experiment.task.load(), shapes, lambda: calls.append(1) or 7)
    assert found == 7
    return bool(calls)


def test_equal_steps_are_counted_once(folder):
    assert [counted(), counted()] == [True, False]
    # The number of steps and the learning rate do not change the cost of a step.
    assert not counted(change(EXPERIMENT, **{"train.steps": 99, "train.learning_rate": 0.5}))


@pytest.mark.parametrize(
    "changes",
    [{"model.width": 16}, {"model.mechanism": Softmax(softcap=3.0)}, {"task.seed": 1}, {"task.symbols": 6}],
    ids=lambda changes: next(iter(changes)),
)
def test_another_model_or_data_are_counted_again(folder, changes):
    counted()
    assert counted(change(EXPERIMENT, **changes))


def test_another_batch_or_precision_is_counted_again(folder):
    counted()
    assert counted(shapes=frozenset({("source", jax.ShapeDtypeStruct((4, 7), "int32"))}))
    assert counted(shapes=frozenset({("source", jax.ShapeDtypeStruct((4, 6), "int64"))}))
    assert counted(shapes=frozenset({("target", jax.ShapeDtypeStruct((4, 6), "int32"))}))
    with jax.enable_x64(True):
        assert counted()


def test_nothing_is_kept_for_functions_of_your_own(folder, monkeypatch):
    def mine(q, k):
        return q @ k

    monkeypatch.setitem(attnlab.SCORES, "mine", mine)
    own = change(EXPERIMENT, **{"model.mechanism": Softmax(score=mine)})
    assert [counted(own), counted(own)] == [True, True]
    # Counts of a function outside the registries are not kept either.
    unknown = change(EXPERIMENT, **{"model.mechanism": Softmax(score=lambda q, k: q @ k)})
    assert [counted(unknown), counted(unknown)] == [True, True]
    assert not list(folder.iterdir())


def test_other_code_of_attnlab_is_counted_again_and_few_versions_are_kept(folder, monkeypatch):
    counted()
    for n in range(9):
        monkeypatch.setattr(kept_flops, "CODE", f"version{n}")
        assert counted()
    assert len(list(folder.glob("flops-*.json"))) == 1 + kept_flops.OLD
    assert not counted()


def test_the_digest_of_the_code_covers_every_file_and_the_libraries(tmp_path, monkeypatch):
    package = tmp_path / "attnlab"
    (package / "room").mkdir(parents=True)
    monkeypatch.setattr(kept_flops.attnlab, "__file__", str(package / "__init__.py"))
    digest = kept_flops._code_digest
    assert digest() is None
    digests = []
    for path, text in (("a.py", "1"), ("a.py", "2"), ("room/b.py", "1"), ("room/c.py", "1")):
        (package / path).write_text(text)
        digests.append(digest())
    (package / "room" / "b.py").rename(package / "room" / "d.py")
    digests.append(digest())
    monkeypatch.setattr(kept_flops, "version", lambda name: "2")
    digests.append(digest())
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("name", ["folder", "CODE"])
def test_without_a_cache_of_programs_or_source_files_nothing_is_kept(folder, monkeypatch, name):
    if name == "folder":
        monkeypatch.setattr(kept_flops.compilation_cache, "folder", lambda: None)
    else:
        monkeypatch.setattr(kept_flops, "CODE", None)
    assert [counted(), counted()] == [True, True]
    assert not list(folder.iterdir())


def test_costs_are_the_same_when_they_are_kept(folder, monkeypatch):
    problem = EXPERIMENT.task.load()
    first = costs(EXPERIMENT, problem)
    assert list(folder.glob("flops-*.json"))
    monkeypatch.setattr(attnlab.analysis.cost, "operations", lambda *args: pytest.fail("traced again"))
    assert costs(EXPERIMENT, problem) == first
    assert Ledger().flops(EXPERIMENT) == first["flops"]
