"""Overrides of fields that the study varies."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from attnlab.lab.study.load import load_study
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import Variation, over, product
from attnlab.mechanisms import MECHANISMS
from tests.small import EXPERIMENT

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


def only(study):
    (experiment,) = study.variants().values()
    return experiment


def test_a_varied_field_keeps_the_variants_with_that_value(toy):
    kept = apply(toy.study, ["model.mechanism=linear"])
    # The variant keeps the value and the name that it has in the study.
    assert {name: each.model.mechanism for name, each in kept.variants().items()} == {"linear": toy.Linear(block=32)}


def test_a_legal_value_that_no_variant_has_becomes_the_one_variant(toy):
    other = apply(toy.study, ["model.mechanism=softmax-blocks"])
    assert {name: each.model.mechanism for name, each in other.variants().items()} == {
        "softmax-blocks": toy.Softmax(block=8)
    }


def test_a_variant_is_chosen_by_its_name(toy):
    study = toy.vary("model.mechanism", elu=toy.Linear(), series=toy.Linear(feature=toy.Taylor()), last=toy.Softmax())
    assert list(apply(study, ["variant=series"]).variants()) == ["series"]
    assert list(apply(study, ["variant=last,elu"]).variants()) == ["elu", "last"]
    assert apply(study, ["variant=series"]).variants() == {"series": study.variants()["series"]}
    assert list(apply(study, ["model.mechanism=linear"]).variants()) == ["elu"]
    assert apply(study, ["variant=series"]).given == frozenset()
    words = "variant='serie' is not known; nearest: 'series'; known: elu, series, last"
    with pytest.raises(ValueError, match=f"^{words}$"):
        apply(study, ["variant=serie"])
    with pytest.raises(ValueError, match=r"^variant='' is not known"):
        apply(study, ["variant=elu,"])
    assert apply(Study(toy.base), ["variant=base"]).variants() == {"base": toy.base}


def test_a_variant_is_chosen_by_the_name_that_other_overrides_give_it(toy):
    put = ["model.mechanism=softmax-blocks"]
    both = product(toy.study.vary, over("model.width", a=64, b=128))
    study = Study(toy.base, both)
    assert list(apply(study, [*put, "variant=b-softmax-blocks"]).variants()) == ["b-softmax-blocks"]
    # The name in the study selects it as well, and the variant then has its new name.
    assert list(apply(study, [*put, "variant=linear-a"]).variants()) == ["linear-a-softmax-blocks"]
    with pytest.raises(ValueError, match=r"^variant='linear-c' is not known; nearest: 'linear-b'; known: a-softmax"):
        apply(study, [*put, "variant=linear-c"])


def test_an_unknown_value_suggests_variant_selection(toy):
    study = toy.vary("model.mechanism", series=toy.Linear(block=1), linear=toy.Softmax())
    del toy.tables["MECHANISMS"]["softmax-blocks"]
    with pytest.raises(
        ValueError, match=r"'series' is not known; .*; variant=series selects the variant of that name$"
    ):
        apply(study, ["model.mechanism=series"])
    # The given value is the name of a variant with another value, so the override is ambiguous.
    named = toy.vary("model.mechanism", linear=toy.Softmax(), other=toy.Softmax(block=3))
    words = "no variant has model.mechanism=linear; variant=linear selects the variant of that name"
    with pytest.raises(ValueError, match=f"^{words}$"):
        apply(named, ["model.mechanism=linear"])


def test_an_ambiguous_value_reports_how_to_select_one_variant():
    (told,) = apply(load_study(EXPERIMENTS / "cora.py"), ["model=gat"]).notes
    assert told == "model=gat selects 3 of 4 variants: gat, dot, linear; variant=gat selects only that one"


def test_variants_of_the_named_class_are_selected(toy):
    study = toy.vary("model.mechanism", a=toy.Linear(block=1), b=toy.Softmax(), c=toy.Linear(block=2))
    assert list(apply(study, ["model.mechanism=linear"]).variants()) == ["a", "c"]


def test_the_selection_of_variants_is_reported(toy):
    study = toy.vary("model.mechanism", a=toy.Linear(block=1), b=toy.Softmax(), c=toy.Linear(block=2))
    assert apply(study, ["model.mechanism=linear"]).notes == ("model.mechanism=linear selects 2 of 3 variants: a, c",)
    assert apply(study, ["model.mechanism=softmax-blocks"]).notes == (
        "no variant has model.mechanism=softmax-blocks, so it is set in all 3 variants",
        "a, b, c are now one variant, softmax-blocks",
    )
    # No variant is left out, so nothing is reported.
    assert apply(study, ["model.mechanism.score=cosine", "model.width=128"]).notes == ()
    assert apply(toy.vary("model.mechanism", a=toy.Linear()), ["model.mechanism=linear"]).notes == ()


def test_a_new_value_of_a_varied_field_is_set():
    """Checks that models without the field and other varied fields stay, under their names."""
    study = apply(load_study(EXPERIMENTS / "cora.py"), ["model.mechanism=performer"])
    assert {name: type(each.model).__name__ for name, each in study.variants().items()} == {
        "performer": "Gat",
        "gcn": "Gcn",
    }
    assert study.notes == (
        "no variant has model.mechanism=performer, so it is set in the 3 of 4 variants that have this field",
        "gat, dot, linear are now one variant, performer",
    )
    detr = apply(load_study(EXPERIMENTS / "detr.py"), ["model.mechanism=performer"])
    assert {name: each.model.anchored for name, each in detr.variants().items()} == {
        "performer": True,
        "vectors-performer": False,
    }


def test_variants_that_differ_in_other_fields_stay_different(toy):
    both = product(
        over("model.mechanism", softmax=toy.Softmax(), linear=toy.Linear()), over("model.width", a=64, b=128)
    )
    put = apply(Study(toy.base, both), ["model.mechanism=softmax-blocks"])
    assert {name: each.model.width for name, each in put.variants().items()} == {
        "a-softmax-blocks": 64,
        "b-softmax-blocks": 128,
    }
    # Variants that are not merged keep their names.
    odd = {
        "softmax": {"model.mechanism": toy.Softmax(), "model.width": 64},
        "linear": {"model.mechanism": toy.Linear(), "model.width": 128},
    }
    put = apply(Study(toy.base, Variation(odd)), ["model.mechanism=softmax-blocks"])
    assert {name: each.model.width for name, each in put.variants().items()} == {
        "softmax-softmax-blocks": 64,
        "linear-softmax-blocks": 128,
    }


def test_each_override_reports_the_remaining_variants(toy):
    study = Study(
        toy.base,
        product(over("model.mechanism", softmax=toy.Softmax(), linear=toy.Linear()), over("model.width", a=64, b=128)),
    )
    assert apply(study, ["model.width=64", "model.mechanism=linear"]).notes == (
        "model.width=64 selects 2 of 4 variants: softmax-a, linear-a",
        "model.mechanism=linear selects 1 of 2 variants: linear-a",
    )


@pytest.mark.parametrize("name", ["long_range", "long_range_all"])
def test_a_nested_mechanism_is_a_different_value_and_reported(name):
    study = load_study(EXPERIMENTS / f"{name}.py")
    found = apply(study, ["model.mechanism=linear"])
    names = ["lists-linear", "text-linear", "pairs-linear", "pixels-linear", "curves-linear"]
    assert list(found.variants()) == names
    assert found.notes == (
        f"model.mechanism=linear selects 5 of {len(study.variants())} variants: {', '.join(names)}, "
        "but not induction-linear, recall-linear, where another value wraps it",
    )


@pytest.mark.parametrize("chosen", [[], ["variant=recall-softmax"]])
def test_a_mechanism_set_inside_another_is_part_of_the_name(chosen):
    study = load_study(EXPERIMENTS / "long_range.py")
    found = apply(study, ["task=recall", *chosen, "model.mechanism.mechanism=sigmoid"])
    before = study.variants()["recall-softmax"]
    inside = replace(before.model.mechanism, mechanism=MECHANISMS["sigmoid"])
    name = "recall-softmax-sigmoid" if chosen else "recall-sigmoid"
    assert found.variants() == {name: change(before, **{"model.mechanism": inside})}
    assert re.fullmatch(rf"recall-softmax(, recall-.* are now one variant,| is now named) {name}", found.notes[-1])


def test_replacing_a_wrapper_is_reported():
    found = apply(load_study(EXPERIMENTS / "long_range.py"), ["task=recall", "model.mechanism=sigmoid"])
    assert only(found).model.mechanism == MECHANISMS["sigmoid"]
    assert list(found.variants()) == ["recall-sigmoid"]
    assert found.notes[1] == (
        "no variant has model.mechanism=sigmoid, so it is set in all 8 variants; this replaces a value that "
        "wraps another, and model.mechanism.mechanism=sigmoid changes only the wrapped one"
    )


def test_variants_made_equal_by_a_nested_field_are_merged(toy):
    study = toy.vary("model.mechanism", a=toy.Linear(block=1), b=toy.Softmax(), c=toy.Linear(block=2))
    found = apply(study, ["model.mechanism.block=8"])
    assert list(found.variants()) == ["block-8", "b"]
    assert found.notes == ("a, c are now one variant, block-8",)


def test_another_task_keeps_what_the_study_set():
    study = load_study(EXPERIMENTS / "extrapolation.py")
    found = apply(study, ["task=text"])
    assert found.notes == ("task=text keeps longest=256 of the file's task",)
    assert found.base.task.longest == 256
    found = apply(study, ["task=text", "task.longest=128"])
    assert (found.notes, found.base.task.longest) == ((), 128)
    # Fields that the study did not set are not reported.
    assert apply(load_study(EXPERIMENTS / "bert.py"), ["task=sst2"]).notes == ()


def test_a_variant_can_be_selected_if_the_base_model_is_invalid():
    study = load_study(EXPERIMENTS / "long_range.py")
    found = apply(study, ["variant=recall-linear"])
    assert found.variants() == {"recall-linear": study.variants()["recall-linear"]}
    # The base takes all values of the selected variant, so it can be built.
    assert found.base == study.variants()["recall-linear"]
    # If the base is invalid for another reason, the error names the requested values.
    with pytest.raises(ValueError, match=r"^model.heads=5 must divide model.width=96$"):
        apply(Study(EXPERIMENT, over("model.width", narrow=64, wide=96)), ["model.width=96", "model.heads=5"])


def test_varied_numbers_are_selected(toy):
    study = toy.vary("model.width", narrow=64, wide=128)
    assert list(apply(study, ["model.width=128"]).variants()) == ["wide"]
    found = apply(study, ["model.width=96"])
    assert {name: each.model.width for name, each in found.variants().items()} == {"width-96": 96}
    assert found.base.model.width == 96
    assert found.notes == (
        "no variant has model.width=96, so it is set in all 2 variants",
        "narrow, wide are now one variant, width-96",
    )
    with pytest.raises(ValueError, match=r"^model.width='x' must be a whole number$"):
        apply(study, ["model.width=x"])


def test_the_base_follows_the_variant_that_is_kept(toy):
    # 6 heads do not divide the width of the base, 64, but the selected variant has width 96.
    study = toy.vary("model.width", narrow=64, wide=96)
    assert only(apply(study, ["model.width=96", "model.heads=6"])).model.heads == 6


def test_an_override_below_a_varied_field_reaches_every_variant_that_has_it(toy):
    changed = apply(toy.study, ["model.mechanism.block=16"]).variants()
    assert changed["softmax"].model.mechanism == toy.Softmax(block=16)
    assert changed["linear"].model.mechanism == toy.Linear(block=16)
    changed = apply(toy.study, ["model.mechanism.feature=taylor"]).variants()
    assert changed["softmax"].model.mechanism == toy.Softmax()
    assert changed["linear"].model.mechanism == toy.Linear(toy.Taylor(), 32)


def test_an_override_below_a_varied_field_reaches_what_variants_are_made_equal_to():
    study = load_study(EXPERIMENTS / "vit_vs_cnn.py")
    # Patches of 4 pixels, the value of the base, do not fit images of 15 × 15 pixels.
    for chosen in ([], ["model=vit"]):
        found = apply(study, [*chosen, "model.patch=5"])
        assert found.base.model == replace(study.base.model, patch=5) == found.variants()["vit-all"].model
        assert not [note for note in found.notes if "patch" in note]
    found = apply(study, ["model=cnn", "model.patch=5"])
    assert found.base.model.patch == 5
    assert found.variants()["cnn-all"] == study.variants()["cnn-all"]
    assert found.notes[-1] == "model.patch=5 changes no variant, only the base that they are matched to"
    # Without a match, no variant has the field.
    with pytest.raises(ValueError, match=r"model.patch: no variant has a field 'patch'"):
        apply(study, ["match=none", "model=cnn", "model.patch=5"])


def test_selecting_and_setting_combine(toy):
    changed = apply(toy.study, ["model.mechanism.block=16", "model.mechanism=linear"])
    assert {name: each.model.mechanism for name, each in changed.variants().items()} == {"linear": toy.Linear(block=16)}


def test_two_fields_that_vary_together(toy):
    study = Study(
        toy.base,
        Variation(
            {
                f"{name}-{width}": {"model.mechanism": mechanism, "model.width": width}
                for name, mechanism in (("softmax", toy.Softmax()), ("linear", toy.Linear()))
                for width in (64, 128)
            }
        ),
    )
    assert list(apply(study, ["model.width=64"]).variants()) == ["softmax-64", "linear-64"]
    assert list(apply(study, ["model.width=64", "model.mechanism=linear"]).variants()) == ["linear-64"]
    other = apply(study, ["model.mechanism=softmax-blocks"])
    assert list(other.variants()) == ["64-softmax-blocks", "128-softmax-blocks"]


def test_overriding_a_parent_of_a_varied_field(toy):
    toy.tables["MODELS"]["wide"] = toy.Net(width=256)
    assert {each.model.width for each in apply(toy.study, ["model=wide"]).variants().values()} == {256}
