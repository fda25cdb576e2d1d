import math
import re
from dataclasses import replace

import pytest

from attnlab.lab.launch import preview
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.study import Experiment, Study, change
from attnlab.lab.study.variation import Variation, over


def test_change_applies_all_fields_together(toy):
    # If fields changed one by one, 64 with 6 heads would be an intermediate state, which is invalid.
    assert change(toy.base, **{"model.heads": 6, "model.width": 96}).model.width == 96
    with pytest.raises(ValueError, match=r"^model.heads=3 must divide model.width=100$"):
        change(toy.base, **{"model.width": 100, "model.heads": 3})


@pytest.mark.parametrize("order", [1, -1])
def test_change_a_value_and_its_fields(toy, order):
    changes = {"model.mechanism": toy.Linear(), "model.mechanism.block": 7}
    changed = change(toy.base, **dict(list(changes.items())[::order]))
    assert changed.model.mechanism == toy.Linear(block=7)
    assert toy.base.model.mechanism == toy.Softmax()


def test_a_value_of_the_wrong_kind_is_named_before_the_config_checks_it(toy):
    with pytest.raises(ValueError, match=r"^model.width='wide' must be a whole number$"):
        Study(toy.base, over("model.width", wide="wide"))
    with pytest.raises(ValueError, match=r"^model.mechanism.block='x' must be a whole number$"):
        change(toy.base, **{"model.mechanism": toy.Linear(), "model.mechanism.block": "x"})


def test_errors_that_name_a_field_get_its_path(toy):
    with pytest.raises(ValueError, match=r"^model.mechanism: block=0 must be at least 1$"):
        change(toy.base, **{"model.mechanism": toy.Linear(), "model.mechanism.block": 0})


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("model.widht", "model.widht: Net has no field 'widht'; nearest: 'width'; known: width, heads"),
        (
            "seeds",
            "seeds: Experiment has no field 'seeds'; nearest: 'train.seeds'; known: task, model, train",
        ),
        ("model.width.x", "model.width.x: model.width is 64, which has no fields"),
        ("model.mechanism.score.x", "model.mechanism.score.x: model.mechanism.score is dot, which"),
        ("model.cross.block", "model.cross.block: model.cross is none, which has no fields; set model.cross"),
    ],
)
def test_unknown_fields_are_refused(toy, path, words):
    with pytest.raises(ValueError, match="^" + re.escape(words)):
        change(toy.base, **{path: 1})


def test_variants_in_order(toy):
    assert list(toy.study.variants()) == ["softmax", "linear"]
    assert toy.study.variants()["linear"].model.mechanism == toy.Linear(block=32)
    assert list(Study(toy.base).variants()) == ["base"]


def test_quick_changes_every_variant(toy):
    assert {each.train.steps for each in toy.study.variants(quick=True).values()} == {10}
    assert {each.train.steps for each in toy.study.variants().values()} == {100}


def test_invalid_experiments_are_refused_at_creation(toy):
    with pytest.raises(ValueError, match="no field 'wdith'"):
        Study(toy.base, over("model.wdith", a=1))
    with pytest.raises(ValueError, match="no field 'stpes'"):
        Study(toy.base, quick={"train.stpes": 1})
    with pytest.raises(ValueError, match="must be at least 1"):
        Study(toy.base, quick={"train.steps": 0})
    with pytest.raises(ValueError, match="must be an Experiment, not Net"):
        Study(toy.base.model)
    with pytest.raises(ValueError, match="at least one variant"):
        Variation({})
    with pytest.raises(ValueError, match="cannot name a folder"):
        Variation({"../up": {"model.width": 8}})
    with pytest.raises(ValueError, match=r"^vary: 'a' must be a dict of fields with their values, not 3$"):
        Variation({"a": 3})


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("vary", {"a": 1}, "vary={'a': 1} must be a Variation, for example over("),
        ("question", 3, "question=3 must be text"),
        ("name", 3, "name=3 must be text"),
        ("margin", "0.1", "margin='0.1' must be a number, or none"),
        ("quick", 2, "quick=2 must be a dict of fields with their values"),
        ("published", {1: 2}, "published={1: 2} must be a dict of variants with their numbers"),
        ("published", {"a": "0.5"}, "published: a='0.5' must be a finite number"),
        ("published", {"a": math.nan}, "published: a=nan must be a finite number"),
    ],
)
def test_a_study_checks_the_kind_of_every_field(toy, field, value, words):
    with pytest.raises(ValueError, match="^" + re.escape(words)):
        Study(toy.base, **{field: value})


@pytest.mark.parametrize("field", ["published", "bands"])
def test_expected_values_name_a_variant(toy, field):
    value = 0.5 if field == "published" else (0.4, None)
    with pytest.raises(ValueError, match=rf"^{field}: no variant 'lineer'; nearest: 'linear'; known: softmax, linear$"):
        replace(toy.study, **{field: {"lineer": value}})
    with pytest.raises(ValueError, match=rf"^{field}: no variant 'linear'; known: base$"):
        Study(toy.base, **{field: {"linear": value}})
    # A part of the study keeps the entries of the other variants.
    whole = replace(toy.study, **{field: {"linear": value}})
    assert getattr(apply(whole, ["variant=softmax"]), field) == {"linear": value}


@pytest.mark.parametrize("field", ["task", "model"])
@pytest.mark.parametrize("value", [None, "net", 3, "the class"])
def test_an_experiment_has_a_task_and_a_model(toy, field, value):
    parts = {"task": toy.Copy(), "model": toy.Net()}
    wrong = type(parts[field]) if value == "the class" else value
    words = f"{field}={wrong!r} must be a {field}, for example one of attnlab.{field.upper()}S"
    with pytest.raises(ValueError, match="^" + re.escape(words) + "$"):
        Experiment(**parts | {field: wrong})


def test_an_experiment_trains_by_default(toy):
    assert Experiment(toy.Copy(), toy.Net()).train.steps > 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"heads": 2.0}, "model.heads=2.0 must be a whole number"),
        ({"norm": "foo"}, "model.norm='foo' must be one of layer, rms"),
        ({"cross": 3}, "model.cross=3 must be a Mechanism, set field by field, or none"),
        ({"window": (1, 2, 3)}, "model.window=(1, 2, 3) must be 2 whole numbers separated by commas"),
        ({"tied": 1}, "model.tied=1 must be true or false"),
        (
            {"window": [1, 2]},
            "model.window=[1, 2] must be 2 whole numbers separated by commas, as a tuple instead of a list",
        ),
        ({"window": (2**32, 0)}, "model.window=(4294967296, 0) must be less than 2³² in absolute value"),
        ({"dropout": math.nan}, "model.dropout=nan must be a number that is finite in float32"),
        ({"dropout": -math.inf}, "model.dropout=-inf must be a number that is finite in float32"),
        ({"dropout": 1e39}, "model.dropout=1e+39 must be a number that is finite in float32"),
    ],
)
def test_an_experiment_checks_the_kind_of_every_field(toy, changes, words):
    with pytest.raises(ValueError, match="^" + re.escape(words) + "$"):
        Experiment(toy.Copy(), toy.Net(**changes))


def test_an_experiment_checks_the_whole_tree(toy):
    with pytest.raises(ValueError, match=r"^model.mechanism.block=8.0 must be a whole number$"):
        Experiment(toy.Copy(), toy.Net(mechanism=toy.Linear(block=8.0)))
    with pytest.raises(ValueError, match=r"^train=3 must be a Train, set field by field$"):
        Experiment(toy.Copy(), toy.Net(), 3)
    with pytest.raises(ValueError, match=r"^task.languages='en' must be texts separated by commas$"):
        Experiment(toy.Copy(languages="en"), toy.Net())


def test_one_experiment_under_two_names_is_refused_but_in_a_preview(toy):
    with pytest.raises(ValueError, match=r"^vary: 'base' and 'heads-4' are the same experiment; give it one name$"):
        Study(toy.base, Variation({"base": {}, "heads-2": {"model.heads": 2}, "heads-4": {"model.heads": 4}}))
    for field, spellings in {
        "train.seeds": {"three": 3, "listed": (0, 1, 2)},
        "train.learning_rate": {"one": 0.1, "list": (0.1,)},
    }.items():
        with pytest.raises(ValueError, match="are the same experiment"):
            Study(toy.base, over(field, **spellings))
    steps = Study(toy.base, over("train.steps", few=20, many=30), quick={"train.steps": 10})
    assert len(steps.variants(quick=True)) == 2


def test_any_field_varies(toy):
    study = Study(toy.base, over("task", copy=toy.Copy(), sort=toy.Sort()) | over("decoder", beam=("any", 4)))
    assert study.variants()["sort"].task == toy.Sort()
    assert study.variants()["beam"].decoder == ("any", 4)
    assert list(over("path", path=1).variants) == ["path"]


def test_matched_quantities_are_validated_and_steps_not_set_twice(toy):
    study = Study(toy.base, over("train.steps", few=20, many=30), match="state")
    with pytest.raises(ValueError, match=r"^match='size' must be one of parameters, flops, state, or none$"):
        replace(study, match="size")
    with pytest.raises(ValueError, match=r"^budget='hours' must be one of steps, flops, seconds$"):
        replace(study, budget="hours")
    with pytest.raises(ValueError, match=r"^budget='flops' solves for train.steps, but 'few' sets train.steps$"):
        replace(study, budget="flops")


def test_a_variant_is_compared_with_an_earlier_one(toy):
    vary = over("train.steps", short=10, middle=20, long=40)
    study = Study(toy.base, vary, against={"long": "middle"})
    assert study.keeping(Variation({"long": {"train.steps": 40}})).against == {}
    assert apply(study, ["train.steps=40"]).against == {}
    assert preview(study).against == {"long": "middle"}
    for against, words in (
        ({"long": "midle"}, "against: no variant 'midle'.*middle"),
        ({"lnog": "middle"}, "against: no variant 'lnog'.*long"),
        ({"short": "long"}, "against: 'short' must come after 'long'"),
        ({"long": "long"}, "must come after"),
        ({"long": 3}, "against"),
    ):
        with pytest.raises(ValueError, match=words):
            Study(toy.base, vary, against=against)


@pytest.mark.parametrize("margin", [0.0, -0.01, float("nan"), float("inf")])
def test_a_margin_is_above_zero(toy, margin):
    with pytest.raises(ValueError, match=r"^margin=.* must be above 0 and finite$"):
        Study(toy.base, margin=margin)
