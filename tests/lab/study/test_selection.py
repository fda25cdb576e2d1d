"""Which overrides select variants by value, and which set a varied field in all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.lab.study.load import load_study
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.selection import selecting_fields
from attnlab.lab.study.study import Study
from attnlab.lab.study.variation import over, product, zipped

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


@pytest.mark.parametrize(
    ("file", "override", "having"),
    [
        ("cora", "train.steps=200", "variant=gcn selects the one that has"),
        ("cora", "train.average=10", "variant=gat,dot,linear selects those that have"),
        ("vit_vs_cnn", "train.steps=1500", "variant=vit-tenth,cnn-tenth,mlp-tenth selects those that have"),
        ("sigmorphon", "train.learning_rate=2e-3", "variant=recurrent-hun,recurrent-jpn selects those that have"),
        ("heads_and_width", "model.feedforward=128", "variant=width-32 selects the one that has"),
    ],
)
def test_a_value_that_some_variants_have_by_the_way_is_set_in_all(file, override, having):
    study = load_study(EXPERIMENTS / f"{file}.py")
    found = apply(study, [override])
    every = len(study.variants())
    assert len(found.variants()) == every
    assert found.notes[0] == f"{override} is set in all {every} variants; {having} it in the file"
    path, _, value = override.partition("=")
    upper, name = path.split(".")
    assert {float(getattr(getattr(each, upper), name)) for each in found.variants().values()} == {float(value)}
    # It changes what is trained, so the bands of the file no longer apply.
    assert found.bands == {}


@pytest.mark.parametrize(
    ("file", "override", "names"),
    [
        ("scan", "task.split=simple", ["gru-simple", "transformer-simple"]),
        ("cora", "model.mechanism=linear", ["linear"]),
        ("cora", "model=gcn", ["gcn"]),
        ("capacity", "task.keys=60", ["elu1-60"]),
        ("long_range", "task=recall", ["recall-softmax", "recall-linear"]),
        ("gates", "model.mechanism=softmax", ["softmax-plain", "softmax-gate", "softmax-norm", "softmax-gate-norm"]),
    ],
)
def test_a_value_of_what_the_study_is_about_selects(file, override, names):
    assert list(apply(load_study(EXPERIMENTS / f"{file}.py"), [override]).variants())[: len(names)] == names


def test_a_field_selects_if_it_varies_by_itself(toy):
    width, heads = over("model.width", narrow=32, wide=64), over("model.heads", narrow=2, wide=4)
    for vary, fields in (
        (width, {"model.width"}),
        (zipped(width, heads), set()),
        (
            product(over("model.width", narrow=32, wide=64), over("model.heads", few=2, many=4)),
            {"model.width", "model.heads"},
        ),
        (
            zipped(over("train.steps", a=5, b=6), over("model.mechanism", a=toy.Softmax(), b=toy.Linear())),
            {"model.mechanism"},
        ),
    ):
        assert selecting_fields(toy.base, vary.variants) == fields


def test_a_value_that_all_variants_have_changes_nothing(toy):
    study = Study(toy.base, zipped(over("model.width", a=32, b=64), over("train.steps", a=5, b=5)))
    found = apply(study, ["train.steps=5"])
    assert (found.variants(), found.notes) == (study.variants(), ())


def test_a_value_without_a_name_is_wrapped_by_no_other():
    """Checks that the value none does not count as a part of a mechanism that has a field without a value."""
    found = apply(load_study(EXPERIMENTS / "sagan.py"), ["model.mechanism=none"])
    assert found.notes == ("model.mechanism=none selects 1 of 3 variants: none",)
