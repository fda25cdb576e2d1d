"""Tests of what is refused before training starts."""

import subprocess
import sys
from dataclasses import dataclass, replace

import pytest

from attnlab.decoding import Beam, Sample
from attnlab.lab import run, show
from attnlab.lab.planning.costs import describe
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import over
from attnlab.mechanisms import Linear, Mechanism, Softmax, Wrapper
from attnlab.models import AssociativeMemory
from attnlab.storage.json_file import FolderError
from attnlab.storage.lock import LockedError
from attnlab.tasks.synthetic.associations import Associations
from attnlab.tasks.synthetic.reverse import Reverse
from tests.lab.small_study import EIGHT, ONE, STUDY
from tests.small import EXPERIMENT
from tests.storage.test_lock import HOLD


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("margin", 2, "margin=2 must be below 1, the largest difference of exact match; 0.01 is one point"),
        ("margin", 1.0, "margin=1 must be below 1, the largest difference of exact match; 0.01 is one point"),
        ("published", {"softmax": 70}, "published: softmax=70 must be in 0 … 1, the range of exact match; 0.01 is one"),
        ("bands", {"softmax": (0.5, 90)}, "bands: softmax=90 must be in 0 … 1, the range of exact match; 0.01 is one"),
        ("bands", {"softmax": (-1, None)}, "bands: softmax=-1 must be in 0 … 1, the range of exact match; 0.01 is"),
    ],
)
def test_percentages_instead_of_fractions_are_refused(tmp_path, field, value, line):
    study = replace(STUDY, **{field: value})
    for call in (show, lambda study: run(study, tmp_path)):
        with pytest.raises(ValueError, match=f"^{line}"):
            call(study)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("decoder", "task", "line"),
    [
        (Sample(), EXPERIMENT.task, "key=None: Sample.* requires a random key"),
        (Softmax(), EXPERIMENT.task, r"decoder=Softmax\(.* must be a decoder, for example one of attnlab.DECODERS"),
        (Beam(), Associations(keys=4), "decoder=Beam.*not decoded symbol by symbol; leave the decoder out"),
    ],
    ids=["draws", "none", "not-decoded"],
)
def test_an_unsuitable_decoder_is_refused_before_training(tmp_path, decoder, task, line):
    model = EXPERIMENT.model if task is EXPERIMENT.task else AssociativeMemory()
    with pytest.raises(ValueError, match=line):
        run(Study(replace(EXPERIMENT, task=task, model=model, decoder=decoder)), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_float64_without_x64_is_refused(tmp_path):
    study = replace(ONE, base=change(EXPERIMENT, **{"model.dtype": "float64"}))
    for act in (lambda: run(study, tmp_path), lambda: describe(study)):
        with pytest.raises(ValueError, match=r"^model.dtype=float64 needs 64-bit numbers: set JAX_ENABLE_X64=1$"):
            act()
    assert list(tmp_path.iterdir()) == []


def test_a_locked_folder_is_refused_before_training(tmp_path):
    held = tmp_path / "small" / "linear"
    held.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, held], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match="linear is locked by process"):
            run(STUDY, tmp_path)
        other.kill()
        other.wait()
    assert not (tmp_path / "small" / "softmax").exists()


def test_an_unwritable_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file" / "below", "/proc/nowhere"):
        with pytest.raises(FolderError, match=f"^{out}/small/") as refused:
            run(ONE, out)
        assert refused.value.exit_code == 4


def test_changed_user_code_is_refused(tmp_path, monkeypatch):
    from attnlab.lab.study import user_code

    study = Study(change(EXPERIMENT, **EIGHT), name="edited")
    monkeypatch.setattr("attnlab.lab.execution.variant.codes", lambda written: {"MECHANISMS.mine": "before"})
    monkeypatch.setattr(user_code, "codes", lambda written: {"MECHANISMS.mine": "before"})
    run(study, tmp_path)
    run(study, tmp_path)
    monkeypatch.setattr(user_code, "codes", lambda written: {"MECHANISMS.mine": "after"})
    with pytest.raises(
        ValueError, match=r"earlier version of the code of MECHANISMS.mine; set another --out DIR to keep both$"
    ):
        run(study, tmp_path)
    monkeypatch.setattr("attnlab.lab.execution.variant.codes", user_code.codes)
    run(study, tmp_path, fresh=True)


def test_an_unregistered_class_is_refused_before_data_are_loaded(tmp_path, monkeypatch):
    @dataclass(frozen=True)
    class Mine(Wrapper):
        mechanism: Mechanism = Linear()

    monkeypatch.setattr(Reverse, "load", lambda task: pytest.fail("loaded"))
    for budget in ("steps", "seconds"):
        study = replace(STUDY, vary=over("model.mechanism", softmax=Softmax(), mine=Mine()), budget=budget)
        with pytest.raises(
            ValueError, match=r"^model\.mechanism: Mine is not in .* attnlab\.MECHANISMS\['mine'\] = Mine\(\)$"
        ):
            run(study, tmp_path)
    assert list(tmp_path.iterdir()) == []
