from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest

from attnlab.lab.study.overrides import apply
from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import over
from attnlab.mechanisms import MECHANISMS, Softmax
from attnlab.models import Transformer
from attnlab.modules.position import POSITIONS, XPos
from tests.lab.study.test_varied_overrides import only
from tests.small import EXPERIMENT


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

        def create(self, key, shape): ...

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
    # Here, "none" is the name of a position, and not None.
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


def test_quick_yields_to_overrides(toy):
    assert apply(toy.study, ["train.steps=50"]).preview == {}
    assert apply(toy.study, ["model.width=8"]).preview == {"train.steps": 10}
    study, given = replace(toy.study, quick=None), ["train.steps=50", "train.warmup=20", "train.seeds=5"]
    assert apply(study, given).preview == {"train.average": 0}
    assert apply(study, given[:2]).preview == {"train.seeds": 2, "train.average": 0}
    # Values that a preview could not use are accepted if no preview is requested.
    assert apply(study, ["train.save_every=25", "train.average=2"]).base.train.average == 2
    assert apply(toy.study, ["train.save_every=25", "train.average=2"]).base.train.average == 2
    study = replace(toy.study, quick={"task.languages": ("en",)})
    # The other task has no field `languages`, so the preview does not set it.
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
    """Checks that overrides apply together if the variants suit only the base: none is built with one of them alone."""
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
