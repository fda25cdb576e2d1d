"""Tests of `study.json`, the file of a study next to the folders of its variants."""

import re
from dataclasses import replace

import pytest

from attnlab.lab.reporting.page import page
from attnlab.lab.results.comparison import comparison
from attnlab.lab.results.outcome import outcomes
from attnlab.lab.runs.study_file import comparable_part, read_study_file, write_study_file
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.study import Study
from attnlab.lab.study.variation import Variation, over, product
from attnlab.mechanisms import Linear, Sigmoid, Softmax
from attnlab.storage.json_file import FolderError
from tests.lab.synthetic import write_run
from tests.small import EXPERIMENT

THREE = over("model.mechanism", softmax=Softmax(), linear=Linear(), delta=Sigmoid())
STUDY = Study(
    EXPERIMENT, THREE, question="Which?", margin=0.02, published={"linear": 0.9}, bands={"delta": (0.5, None)}
)


def part(*names):
    """Returns the study with some of its variants, as after an override of the varied field."""
    left = STUDY.keeping(replace(THREE, variants={name: THREE.variants[name] for name in names}))
    told = {field: {n: x for n, x in getattr(STUDY, field).items() if n in names} for field in ("published", "bands")}
    return replace(left, **told)


def order(home):
    return list(read_study_file(home))


def test_a_study_is_read_by_variant(tmp_path):
    assert read_study_file(tmp_path) == {}
    assert write_study_file(tmp_path, replace(STUDY, against={"delta": "softmax"})) == []
    assert read_study_file(tmp_path)["delta"] == {
        "order": 2, "comparable_part": comparable_part(EXPERIMENT.task), "margin": 0.02, "question": "Which?",
        "published": None, "band": [0.5, None], "against": "softmax",
    }  # fmt: skip
    assert read_study_file(tmp_path)["linear"]["published"] == 0.9


def test_a_run_of_some_variants_keeps_the_order_of_all(tmp_path):
    for study in (part("linear"), STUDY, part("delta", "linear")):
        write_study_file(tmp_path, study)
        assert order(tmp_path) == ["softmax", "linear", "delta"]
    assert read_study_file(tmp_path)["linear"]["published"] == 0.9
    # If a study lists all variants in another order, that order is used.
    turned = replace(THREE, variants={name: THREE.variants[name] for name in ("delta", "softmax", "linear")})
    write_study_file(tmp_path, replace(STUDY, vary=turned))
    assert order(tmp_path) == ["delta", "softmax", "linear"]


def test_a_variant_made_by_an_override_is_last_and_no_reference(tmp_path):
    write_study_file(tmp_path, replace(STUDY, against={"delta": "linear"}))
    own = apply(replace(STUDY, against={"delta": "linear"}), ["model.mechanism=window"])
    assert list(own.variants()) == ["window"]
    write_study_file(tmp_path, own)
    assert order(tmp_path) == ["softmax", "linear", "delta", "window"]
    assert read_study_file(tmp_path)["delta"]["against"] == "linear"
    write_study_file(tmp_path, STUDY)
    assert order(tmp_path) == ["softmax", "linear", "delta", "window"]


def test_removed_variants_are_named_and_left_out(tmp_path):
    for n, name in enumerate(("softmax", "linear", "delta")):
        write_run(tmp_path / name, name, steps=20, groups=(), order=n)
    write_study_file(tmp_path, STUDY)
    two = replace(THREE, variants={name: THREE.variants[name] for name in ("softmax", "delta")})
    changed = replace(STUDY, vary=two, published={})
    (note,) = write_study_file(tmp_path, changed)
    assert note.startswith("linear is no longer a variant of this study")
    assert write_study_file(tmp_path, changed) == []
    assert {one.name for one in outcomes(tmp_path)} == {"softmax", "delta"}


def test_a_missing_variant_keeps_its_place_and_is_not_replaced_as_reference(tmp_path):
    for n, name in enumerate(("linear", "delta")):
        write_run(tmp_path / name, name, steps=20, groups=(), order=n)
    write_study_file(tmp_path, STUDY)
    found = {one.name: one for one in outcomes(tmp_path)}
    assert [found[name].order for name in ("softmax", "linear", "delta")] == [0, 1, 2]
    assert not found["softmax"].begun
    said = comparison(list(found.values()))
    assert not said.verdicts
    assert said.silent == "it has not finished"
    # It is not replaced either if its folder lacks experiment.json.
    write_run(tmp_path / "softmax", "softmax", steps=20, groups=())
    assert comparison(outcomes(tmp_path)).verdicts
    (tmp_path / "softmax" / "experiment.json").unlink()
    assert not comparison(outcomes(tmp_path)).verdicts
    assert "Not begun" not in page(outcomes(tmp_path), "study")


def test_a_changed_margin_is_reported_and_used(tmp_path):
    write_study_file(tmp_path, STUDY)
    assert write_study_file(tmp_path, STUDY) == []
    assert "margin was 0.02 and is 0.5 now" in write_study_file(tmp_path, replace(STUDY, margin=0.5))[0]
    assert read_study_file(tmp_path)["softmax"]["margin"] == 0.5


def test_a_preview_keeps_published_values_without_using_them(tmp_path):
    write_study_file(tmp_path, STUDY, quick=True)
    assert read_study_file(tmp_path)["linear"]["published"] is None
    write_study_file(tmp_path, STUDY)
    write_study_file(tmp_path, part("linear", "delta"), quick=True)
    assert read_study_file(tmp_path)["linear"]["published"] == 0.9
    assert read_study_file(tmp_path)["delta"]["band"] == [0.5, None]


def test_it_defines_the_order_of_folders(tmp_path):
    for n, name in enumerate(("delta", "linear", "softmax")):
        write_run(tmp_path / name, name, steps=20, groups=(), order=n)
    assert [one.name for one in sorted(outcomes(tmp_path), key=lambda one: one.order)] == ["delta", "linear", "softmax"]
    write_study_file(tmp_path, STUDY)
    assert [one.name for one in sorted(outcomes(tmp_path), key=lambda one: one.order)] == ["softmax", "linear", "delta"]
    assert {one.experiment["margin"] for one in outcomes(tmp_path)} == {0.02}


def test_an_altered_study_file_is_named(tmp_path):
    write_study_file(tmp_path, STUDY)
    path = tmp_path / "study.json"
    path.write_text(path.read_text().replace("Which?", "Whose?"))
    for call in (lambda: read_study_file(tmp_path), lambda: write_study_file(tmp_path, STUDY)):
        with pytest.raises(FolderError, match=r"study\.json: "):
            call()


def test_fresh_replaces_an_unreadable_study_file(tmp_path):
    write_study_file(tmp_path, STUDY)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(FolderError, match="remove only that file, and the next run writes it again"):
        write_study_file(tmp_path, STUDY)
    assert write_study_file(tmp_path, STUDY, fresh=True) == []
    assert order(tmp_path) == ["softmax", "linear", "delta"]


def test_variants_that_have_not_started_have_the_evaluation_of_their_task(tmp_path):
    tasks = over("task", short=EXPERIMENT.task, long=replace(EXPERIMENT.task, seed=7))
    study = Study(EXPERIMENT, product(tasks, THREE))
    second = {name: own for name, own in product(tasks, THREE).variants.items() if name.startswith("long")}
    for n, name in enumerate(second):
        write_run(tmp_path / name, name, steps=20, groups=(), order=n)
    write_study_file(tmp_path, study.keeping(Variation(second)))
    assert set(comparison(outcomes(tmp_path)).verdicts) == {"long-linear", "long-delta"}
    drawn = page(outcomes(tmp_path), "study")
    (waiting,) = re.findall("Not begun: (.*?)</p>", drawn)
    assert re.sub("<.*?>", "", waiting) == "short-softmax, short-linear, short-delta."
    assert "3 of 6 variants finished" in drawn


def test_an_override_of_the_task_is_made_in_the_variants_that_are_not_kept(tmp_path):
    own = apply(STUDY, ["variant=softmax,linear", "task=copy", "task.symbols=3"])
    write_study_file(tmp_path, own)
    found = read_study_file(tmp_path)
    assert list(found) == ["softmax", "linear", "delta"]
    parts = [found[name]["comparable_part"] for name in found]
    assert (parts[0]["name"], parts[1], parts[2]) == ("copy", parts[0], parts[0])


def test_variants_that_only_the_file_has_are_not_planned_for_another_task(tmp_path):
    tasks = over("task.symbols", few=4, many=5)
    study = Study(EXPERIMENT, product(over("model.mechanism", softmax=Softmax(), linear=Linear()), tasks))
    own = apply(study, ["task.symbols=3", "model.width=16"])
    write_study_file(tmp_path, own)
    assert order(tmp_path) == ["softmax-3", "linear-3"]
    # Those that are trained in this folder are kept.
    (tmp_path / "linear-few").mkdir()
    write_study_file(tmp_path, own)
    assert order(tmp_path) == ["linear-few", "softmax-3", "linear-3"]
    write_study_file(tmp_path, study)
    assert order(tmp_path)[:4] == list(study.variants())
    assert order(tmp_path)[4:] == ["softmax-3", "linear-3"]


def test_variants_with_other_source_marks_have_the_same_evaluation(tmp_path):
    marks = {name: name for name in ("end", "begin", "both", "none")}
    study = Study(EXPERIMENT, over("task.source_marks", **marks), name="marks")
    write_study_file(tmp_path, study)
    told = read_study_file(tmp_path)
    assert list(told) == list(marks)
    assert all(told[name]["comparable_part"] == told["end"]["comparable_part"] for name in marks)
    # With other sequences, the evaluation differs.
    assert comparable_part(replace(EXPERIMENT.task, longest=7)) != told["end"]["comparable_part"]
