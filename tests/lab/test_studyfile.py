"""What a study says of its variants, beside their folders."""

from dataclasses import replace

import pytest

from attnlab.lab.jsonfile import FolderError
from attnlab.lab.outcome import outcomes
from attnlab.lab.study import Study, over
from attnlab.lab.studyfile import keep, said
from attnlab.mechanisms import Linear, Sigmoid, Softmax
from tests.lab.synthetic import write_run
from tests.small import EXPERIMENT

THREE = over("model.mechanism", softmax=Softmax(), linear=Linear(), delta=Sigmoid())
STUDY = Study(
    EXPERIMENT, THREE, question="Which?", margin=0.02, published={"linear": 0.9}, bands={"delta": (0.5, None)}
)


def part(*names):
    """The study of some of its variants, as an override of what it varies leaves it."""
    left = STUDY.keeping(replace(THREE, variants={name: THREE.variants[name] for name in names}))
    told = {field: {n: x for n, x in getattr(STUDY, field).items() if n in names} for field in ("published", "bands")}
    return replace(left, **told)


def order(home):
    return list(said(home))


def test_what_a_study_says_is_read_by_variant(tmp_path):
    assert said(tmp_path) == {}
    assert keep(tmp_path, replace(STUDY, against={"delta": "softmax"})) == []
    assert said(tmp_path)["delta"] == {
        "order": 2, "margin": 0.02, "question": "Which?", "published": None, "band": [0.5, None], "against": "softmax",
    }  # fmt: skip
    assert said(tmp_path)["linear"]["published"] == 0.9


def test_a_run_of_some_variants_leaves_every_one_in_its_place(tmp_path):
    keep(tmp_path, part("linear"))
    assert order(tmp_path) == ["linear"]
    keep(tmp_path, STUDY)
    assert order(tmp_path) == ["softmax", "linear", "delta"]
    keep(tmp_path, part("delta", "linear"))
    assert order(tmp_path) == ["softmax", "linear", "delta"]
    assert said(tmp_path)["linear"]["published"] == 0.9
    # The same variants in another order are another order, and those that are gone stand behind.
    turned = replace(THREE, variants={name: THREE.variants[name] for name in ("delta", "softmax", "linear")})
    keep(tmp_path, replace(STUDY, vary=turned))
    assert order(tmp_path) == ["delta", "softmax", "linear"]
    keep(tmp_path, Study(EXPERIMENT))
    assert order(tmp_path) == ["base", "delta", "softmax", "linear"]


def test_another_margin_is_told_and_taken(tmp_path):
    keep(tmp_path, STUDY)
    assert keep(tmp_path, STUDY) == []
    assert "margin was 0.02 and is 0.5 now" in keep(tmp_path, replace(STUDY, margin=0.5))[0]
    assert said(tmp_path)["softmax"]["margin"] == 0.5


def test_a_glimpse_takes_nothing_that_was_published_and_loses_none(tmp_path):
    keep(tmp_path, STUDY, quick=True)
    assert said(tmp_path)["linear"]["published"] is None
    keep(tmp_path, STUDY)
    keep(tmp_path, part("linear", "delta"), quick=True)
    assert said(tmp_path)["linear"]["published"] == 0.9
    assert said(tmp_path)["delta"]["band"] == [0.5, None]


def test_folders_take_their_order_from_it(tmp_path):
    for n, name in enumerate(("delta", "linear", "softmax")):
        write_run(tmp_path / name, name, steps=20, groups=(), order=n)
    assert [one.name for one in sorted(outcomes(tmp_path), key=lambda one: one.order)] == ["delta", "linear", "softmax"]
    keep(tmp_path, STUDY)
    assert [one.name for one in sorted(outcomes(tmp_path), key=lambda one: one.order)] == ["softmax", "linear", "delta"]
    assert {one.experiment["margin"] for one in outcomes(tmp_path)} == {0.02}


def test_one_that_was_altered_is_named(tmp_path):
    keep(tmp_path, STUDY)
    path = tmp_path / "study.json"
    path.write_text(path.read_text().replace("Which?", "Whose?"))
    for call in (lambda: said(tmp_path), lambda: keep(tmp_path, STUDY)):
        with pytest.raises(FolderError, match=r"study\.json: "):
            call()
