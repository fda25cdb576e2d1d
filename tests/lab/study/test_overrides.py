from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from attnlab.lab.study.load import load_study
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import Variation, over, product
from attnlab.mechanisms import MECHANISMS, Softmax
from attnlab.models import Transformer
from attnlab.modules.position import POSITIONS, XPos
from tests.small import EXPERIMENT

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


def only(study):
    (experiment,) = study.variants().values()
    return experiment


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("model.width=128", "model.width", 128),
        ("model.dropout=.1", "model.dropout", 0.1),
        ("model.tied=true", "model.tied", True),
        ("model.norm=rms", "model.norm", "rms"),
        ("model.hidden=32", "model.hidden", 32),
        ("model.window=2,0", "model.window", (2, 0)),
        ("train.seeds=0,1,5", "train.seeds", (0, 1, 5)),
        ("train.seeds=5", "train.seeds", 5),
        ("train.learning_rate=1e-3,3e-3", "train.learning_rate", (1e-3, 3e-3)),
        ("train.schedule=constant", "train.schedule", "constant"),
        ("task.languages=hu", "task.languages", ("hu",)),
        ("task.train=a=b.tsv", "task.train", "a=b.tsv"),
    ],
)
def test_an_override_sets_a_field_in_every_variant(toy, override, path, value):
    changed = apply(toy.study, [override])
    for experiment in changed.variants().values():
        found = experiment
        for name in path.split("."):
            found = getattr(found, name)
        assert found == value
        assert type(found) is type(value)
    assert list(changed.variants()) == ["softmax", "linear"]


def test_values_of_every_field_type(toy):
    @dataclass(frozen=True)
    class Loose:
        size: Any = 3
        later: Unresolved = 0.5  # noqa: F821 (that it cannot be resolved is the case)

    study = Study(replace(toy.base, model=Loose()))
    assert apply(study, ["model.size=4", "model.later=1"]).base.model == Loose(4, 1.0)
    with pytest.raises(ValueError, match=r"^model.size='x' must be a whole number$"):
        apply(study, ["model.size=x"])


def test_overrides_do_not_mutate_the_study(toy):
    before = toy.study.variants()
    apply(toy.study, ["model.width=128", "model.mechanism=linear"])
    assert toy.study.variants() == before


def test_names_select_registered_values(toy):
    picked = apply(toy.study, ["task=sort", "task.length=3", "model.position=rotary", "model.cross=linear"])
    experiment = picked.variants()["softmax"]
    assert experiment.task == toy.Sort(length=3)
    assert experiment.model.position == toy.Rotary()
    assert experiment.model.cross == toy.Linear()
    assert apply(picked, ["model.cross=none"]).variants()["linear"].model.cross is None
    # "none" is a position of its own here, not the absence of one.
    assert apply(picked, ["model.position=none"]).base.model.position == toy.tables["POSITIONS"]["none"]


def test_deeper_fields_apply_after_the_selection_in_any_order(toy):
    study = Study(toy.base)
    given = ["model.mechanism.feature.order=4", "model.mechanism.feature=taylor", "model.mechanism=linear"]
    for overrides in (given, given[::-1]):
        assert only(apply(study, overrides)).model.mechanism == toy.Linear(feature=toy.Taylor(order=4))
    assert only(apply(study, ["model.mechanism.score=cosine"])).model.mechanism.score is toy.cosine


def test_combinations_are_validated_after_all_overrides(toy):
    assert only(apply(Study(toy.base), ["model.heads=6", "model.width=96"])).model.heads == 6
    with pytest.raises(ValueError, match=r"^model.heads=3 must divide model.width=100$"):
        apply(toy.study, ["model.width=100", "model.heads=3"])


# What the study varies.


def test_a_varied_field_keeps_the_variants_with_that_value(toy):
    kept = apply(toy.study, ["model.mechanism=linear"])
    # The study's own linear, under its own name.
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
    # By the study's own name, too, of which it takes the new one.
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
    # The name of a variant, whose value is another: which is meant is not known.
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
    # Nothing is left out, and nothing is said.
    assert apply(study, ["model.mechanism.score=cosine", "model.width=128"]).notes == ()
    assert apply(toy.vary("model.mechanism", a=toy.Linear()), ["model.mechanism=linear"]).notes == ()


def test_a_new_value_of_a_varied_field_is_set():
    """A model that a variant brings may have none; what else varies stays, under the name it had."""
    study = apply(load_study(EXPERIMENTS / "cora.py"), ["model.mechanism=performer"])
    assert {name: type(each.model).__name__ for name, each in study.variants().items()} == {"performer": "Gat"}
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
    # Nor is anything told of what nobody set.
    assert apply(load_study(EXPERIMENTS / "bert.py"), ["task=sst2"]).notes == ()


def test_a_variant_can_be_selected_if_the_base_model_is_invalid():
    study = load_study(EXPERIMENTS / "long_range.py")
    found = apply(study, ["variant=recall-linear"])
    assert found.variants() == {"recall-linear": study.variants()["recall-linear"]}
    # The base takes all of what was chosen, and so it can be built.
    assert found.base == study.variants()["recall-linear"]
    # What the base cannot be for another reason is refused in the words that name what was asked.
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
    # The base's own width, 64, has no 6 heads; but nobody asked for 64.
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
    # Images of 15 pixels a side have no patches of 4, the base's own.
    for chosen in ([], ["model=vit"]):
        found = apply(study, [*chosen, "model.patch=5"])
        assert found.base.model == replace(study.base.model, patch=5) == found.variants()["vit-all"].model
        assert not [note for note in found.notes if "patch" in note]
    found = apply(study, ["model=cnn", "model.patch=5"])
    assert found.base.model.patch == 5
    assert found.variants()["cnn-all"] == study.variants()["cnn-all"]
    assert found.notes[-1] == "model.patch=5 changes no variant, only the base that they are matched to"
    # What is made equal to nothing has nothing to reach.
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


def test_quick_yields_to_overrides(toy):
    assert apply(toy.study, ["train.steps=50"]).preview == {}
    assert apply(toy.study, ["model.width=8"]).preview == {"train.steps": 10}
    study, given = replace(toy.study, quick=None), ["train.steps=50", "train.warmup=20", "train.seeds=5"]
    assert apply(study, given).preview == {"train.average": 0}
    assert apply(study, given[:2]).preview == {"train.seeds": 2, "train.average": 0}
    # What a preview could not do is no matter where none is asked for.
    assert apply(study, ["train.save_every=25", "train.average=2"]).base.train.average == 2
    assert apply(toy.study, ["train.save_every=25", "train.average=2"]).base.train.average == 2
    study = replace(toy.study, quick={"task.languages": ("en",)})
    # Another task has no such field to shorten.
    assert apply(study, ["task=sort"]).quick == {}


def test_no_overrides(toy):
    assert apply(toy.study, []) == toy.study


REFUSED = [
    ("model.width", "'model.width' must be field=value, for example train.steps=500"),
    ("=3", "'=3' must be field=value"),
    ("", "'' must be field=value"),
    (".=3", "'.=3' must be field=value"),
    ("model..width=3", "'model..width=3' must be field=value"),
    ("--width=3", "--width: Experiment has no field '--width'"),
    ("model.widht=3", "model.widht: Net has no field 'widht'; nearest: 'width'; known: width, heads"),
    ("model.widt=3", "model.widt: Net has no field 'widt'; nearest: 'width'"),
    ("Model.width=3", "Model: Experiment has no field 'Model'; nearest: 'model'; known: task, model, train"),
    ("seeds=3", "seeds: Experiment has no field 'seeds'; nearest: 'train.seeds'"),
    ("width=3", "width: Experiment has no field 'width'; nearest: 'model.width'"),
    ("model.width=wide", "model.width='wide' must be a whole number"),
    ("model.width=64.0", "model.width='64.0' must be a whole number"),
    ("model.width=", "model.width='' must be a whole number"),
    ("model.width=1,2", "model.width='1,2' must be a whole number"),
    ("model.width=--help", "model.width='--help' must be a whole number"),
    ("model.dropout=much", "model.dropout='much' must be a number"),
    ("model.tied=yes", "model.tied='yes' must be true or false"),
    ("model.norm=batch", "model.norm='batch' must be one of layer, rms"),
    ("model.hidden=x", "model.hidden='x' must be a whole number, or none"),
    ("model.window=1", "model.window='1' must be 2 whole numbers separated by commas"),
    ("model=3", "model='3' is not known; known: net"),
    ("model=nett", "model='nett' is not known; nearest: 'net'; known: net"),
    ("model.mechanism=sofmax", "model.mechanism='sofmax' is not known; nearest: 'softmax'; known: softmax, "),
    ("model.mechanism=None", "model.mechanism='None' is not known"),
    ("model.mechanism=__import__('os')", "model.mechanism=\"__import__('os')\" is not known"),
    (
        "model.mechanism.blok=1",
        "model.mechanism.blok: no variant has a field 'blok' in model.mechanism; nearest: 'block'",
    ),
    ("model.mechanism.block=x", "model.mechanism.block='x' must be a whole number"),
    ("model.mechanism.block=0", "model.mechanism: block=0 must be at least 1"),
    ("model.mechanism.feature=tailor", "model.mechanism.feature='tailor' is not known; nearest: 'taylor'"),
    ("model.mechanism.score=dots", "model.mechanism.score='dots' is not known; nearest: 'dot'"),
    ("model.cross.block=1", "model.cross.block: model.cross is none, which has no fields; set model.cross"),
    ("model.width.x=1", "model.width.x: model.width is 64, which has no fields"),
    ("model.heads=5", "model.heads=5 must divide model.width=64"),
    ("task=cpoy", "task='cpoy' is not known; nearest: 'copy'; known: copy, sort"),
    ("train=3", "train='3' must be a Train, set field by field"),
    ("train.steps=-5", "train.steps=-5 must be at least 1"),
    ("train.steps=1e3", "train.steps='1e3' must be a whole number"),
    ("train.learning_rate=nan", "train.learning_rate=nan must be a finite number above 0"),
    ("train.learning_rate=1e-3,1e-3", "train.learning_rate=(0.001, 0.001) must list at least one rate, each only once"),
    ("train.seeds=1,1", "train.seeds=(1, 1) must list at least one seed, each only once"),
    ("train.seeds=0", "train.seeds=0 must be a number of seeds in 1 … 65536"),
    ("train.schedule=cosin", "train.schedule='cosin' must be one of constant, cosine, inverse_sqrt"),
]


@pytest.mark.parametrize(("override", "words"), REFUSED, ids=[override for override, _ in REFUSED])
def test_invalid_overrides_give_one_line(toy, override, words, capfd):
    with pytest.raises(ValueError, match="^" + re.escape(words)) as refusal:
        apply(toy.study, [override])
    assert "\n" not in str(refusal.value)
    assert capfd.readouterr() == ("", "")


def test_a_repeated_field_is_refused(toy):
    with pytest.raises(ValueError, match=r"^train.steps is given twice: '5' and '6'$"):
        apply(toy.study, ["train.steps=5", "train.steps=6"])


def test_a_selection_that_removes_the_varied_field_is_refused(toy):
    linear = apply(Study(toy.base), ["model.mechanism=linear"]).base
    study = Study(linear, over("model.mechanism.feature", elu=toy.Elu(), taylor=toy.Taylor()))
    with pytest.raises(ValueError, match=r"^model.mechanism.feature: Softmax has no field 'feature'"):
        apply(study, ["model.mechanism=softmax"])


def test_published_values_apply_to_their_configuration_only(toy):
    study = replace(toy.study, published={"softmax": 0.5})
    for kept in ([], ["train.seeds=5"], ["model.mechanism=softmax"]):
        assert apply(study, kept).published == {"softmax": 0.5}
    for other in (["model.width=128"], ["task.languages=hu"], ["model.mechanism.block=8"]):
        assert apply(study, other).published == {}


def test_bands_apply_to_the_unchanged_study(toy):
    study = replace(toy.study, bands={"softmax": (0.5, None)})
    for kept in ([], ["train.seeds=5"], ["model.mechanism=softmax"]):
        assert apply(study, kept).bands == {"softmax": (0.5, None)}
    for other in (["model.width=128"], ["task.languages=hu"], ["train.steps=5"], ["match=parameters"]):
        assert apply(study, other).bands == {}


def test_the_match_target_does_not_depend_on_the_selected_variant(toy):
    for study in (replace(toy.study, match="parameters"), replace(toy.study, budget="flops")):
        chosen = apply(study, ["model.mechanism=linear"])
        assert list(chosen.variants()) == ["linear"]
        assert chosen.base.model.mechanism == toy.Softmax()
    assert apply(toy.study, ["model.mechanism=linear"]).base.model.mechanism == toy.Linear(block=32)


def test_the_matched_quantity_is_that_of_the_study(toy):
    found = apply(toy.study, ["match=state", "budget=flops", "margin=0.5", "train.steps=7"])
    assert (found.match, found.budget, found.margin, found.base.train.steps) == ("state", "flops", 0.5, 7)
    assert apply(found, ["match=none", "margin=none"]) == replace(found, match=None, margin=None)
    for given, refusal in {
        "match=size": "match='size' must be",
        "budget=hours": "budget='hours' must be",
        "margin=0": "margin=0.0 must be above 0",
        "margin=few": "margin='few' must be",
    }.items():
        with pytest.raises(ValueError, match=f"^{refusal}"):
            apply(toy.study, [given])


@pytest.mark.parametrize("turned", [False, True])
def test_overrides_are_applied_together(turned):
    """Also where variants were made for what the base had: none of them is built with the other's value."""
    model = Transformer(width=16, heads=2, layers=1, position=XPos())
    study = Study(
        change(EXPERIMENT, model=model),
        over("model.mechanism", all=Softmax(), near=MECHANISMS["window"]),
        name="turned",
    )
    given = ["model.mechanism=linear", "model.position=sinusoidal"]
    (found,) = apply(study, given[::-1] if turned else given).variants().values()
    assert (found.model.mechanism, found.model.position) == (MECHANISMS["linear"], POSITIONS["sinusoidal"])


@pytest.mark.parametrize("marks", ["end", "begin", "both", "none"])
def test_source_marks_are_set_by_name(marks):
    assert only(apply(Study(EXPERIMENT), [f"task.source_marks={marks}"])).task.source_marks == marks


def test_unknown_source_marks_are_refused():
    with pytest.raises(ValueError, match=r"^task\.source_marks='ende' must be one of end, begin, both, none$"):
        apply(Study(EXPERIMENT), ["task.source_marks=ende"])
