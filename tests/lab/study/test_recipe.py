"""Tests of the shipped experiment files with another task or model from the command line."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from attnlab.data.text.units import Bpe, Bytes, Characters, Words
from attnlab.lab.study.load import load_study
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.recipe import described, inherit
from attnlab.lab.study.study import warmups
from attnlab.models import MODELS, Transformer
from attnlab.models.seq2seq import Seq2Seq
from attnlab.tasks import TASKS, Boxes, Cells, Copy, Multi30k, Parallel, Text

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
SET = ["task.units=characters", "task.smoothing=0", "task.joint=false", "task.buckets=2"]
SPLIT = "with task=parallel the study no longer varies task.split"
FILES = ["task.train=a", "task.valid=b", "task.test=c"]


def resolved(file, *given):
    return apply(load_study(EXPERIMENTS / f"{file}.py"), given)


def test_a_recipe_has_the_set_fields_and_training_fields_of_user_files():
    old = Multi30k(source="en", target="de", units=Bpe(size=500))
    found = inherit(old, Parallel())
    # The kept values are defaults of Multi30k, which differ from those of Parallel.
    assert found.config == Parallel(units=Bpe(size=500), joint=True, smoothing=0.1, buckets=10)
    assert found.kept == ("units", "joint", "smoothing", "buckets")
    assert found.lost == ("source", "target")
    assert described(found.config, found.kept[:2]) == "units=bpe units.size=500 joint=true"
    assert inherit(old, Parallel(), frozenset({"units", "source"})).lost == ("target",)
    assert inherit(Cells(), Boxes()).config == Boxes(flip=True)
    # The units of some tasks are fixed and not a field.
    assert inherit(TASKS["reverse"], Parallel()).config.units == Words()
    # A public task uses its own defaults.
    assert inherit(TASKS["scan"], TASKS["multi30k"]).config == TASKS["multi30k"]
    assert inherit(TASKS["trec"], TASKS["sst2"]).config == TASKS["sst2"]


def test_fields_of_a_registered_value_are_kept():
    file = Seq2Seq(width=32, cell="rnn", attention="luong", dropout=0.5)
    found = inherit(file, MODELS["bahdanau"])
    assert found.config == replace(MODELS["bahdanau"], width=32, dropout=0.5)
    assert (found.kept, found.lost) == (("width", "dropout"), ("cell", "attention"))


def test_a_field_of_an_inherited_value_can_be_set():
    study = resolved("multi30k_tiny", "task=parallel", *FILES, "task.units.size=300")
    (only,) = study.variants().values()
    assert (only.task.units, only.task.joint) == (Bpe(size=300), True)
    # The value of the override takes precedence over that of the file, as does a field of its own.
    study = resolved("multi30k_tiny", "task=parallel", *FILES, "task.units=words", "task.units.lower=true")
    assert study.variants()["base"].task.units == Words(lower=True)
    # The file has no such field, so the field is that of the new task.
    study = resolved("g2p", "task=parallel", *FILES, "task.units.lower=true")
    assert study.variants()["softmax"].task.units == Characters(lower=True)


def test_fields_of_another_type_and_incompatible_fields_are_kept():
    @dataclass(frozen=True)
    class Odd:
        width: str = "64"
        heads: int = 4
        layers: int = 2
        training_only_fields: ClassVar = ("heads",)

        def __post_init__(self):
            if self.heads == 8:
                raise ValueError("heads=8 is too many")

    found = inherit(Transformer(width=128, heads=8, layers=3), Odd())
    assert (found.config, found.kept, found.lost) == (Odd(layers=3), ("layers",), ("width", "heads"))


@pytest.mark.parametrize(
    ("file", "given", "task", "notes"),
    [
        (
            "multi30k_tiny",
            ["task=parallel", *FILES],
            Parallel(*"abc", units=Bpe(size=10_000), joint=True, smoothing=0.1, buckets=10),
            ["task=parallel keeps units=bpe joint=true smoothing=0.1 buckets=10 of the file's task, and does not keep "
             "source=en target=de"],
        ),
        (
            "multi30k_tiny",
            ["task=parallel", *FILES, *SET],
            Parallel(*"abc", buckets=2),
            ["task=parallel does not keep source=en target=de"],
        ),
        (
            "scan",
            ["task=parallel", *FILES, "variant=gru-jump"],
            Parallel(*"abc", units=Words(), buckets=4),
            ["task=parallel keeps buckets=4 units=words of the file's task", SPLIT],
        ),
        (
            "scan",
            ["task=parallel", *FILES, "task.units=bytes", "variant=gru-jump"],
            Parallel(*"abc", units=Bytes(), buckets=4),
            ["task=parallel keeps buckets=4 of the file's task", SPLIT],
        ),
        (
            "g2p",
            ["task=parallel", *FILES],
            Parallel(*"abc", buckets=3),
            ["task=parallel keeps buckets=3 of the file's task, and does not keep target_units=words"],
        ),
        (
            "g2p",
            ["task=parallel", *FILES, "task.target_units=words"],
            Parallel(*"abc", target_units=Words(), buckets=3),
            ["task=parallel keeps buckets=3 of the file's task"],
        ),
        ("detr", ["task=boxes", *FILES], Boxes(*"abc", flip=True), ["task=boxes keeps flip=true of the file's task"]),
    ],
)  # fmt: skip
def test_user_data_keep_the_recipe_of_the_file(file, given, task, notes):
    found = resolved(file, *given)
    assert {experiment.task for experiment in found.variants().values()} == {task}
    assert list(found.notes) == notes


@pytest.mark.parametrize(
    ("file", "given", "names"),
    [
        ("g2p", ["model=bahdanau"], ["bahdanau"]),
        ("dates", ["model=bahdanau"], ["bahdanau"]),
        ("g2p", ["model=transformer"], ["softmax"]),
        ("scan", ["task=parallel", *FILES], ["gru", "transformer"]),
        ("scan", FILES, ["gru", "transformer"]),
        ("scan", [*FILES, "variant=gru"], ["gru"]),
        ("scan", FILES[:1], [f"{m}-{s}" for m in ("gru", "transformer") for s in ("simple", "length", "jump")]),
        ("sigmorphon", FILES, ["recurrent", "transformer"]),
        ("sigmorphon", ["task=parallel", *FILES], ["recurrent", "transformer"]),
        ("sigmorphon", [*FILES, "task.language=kor"], ["recurrent-kor", "transformer-kor"]),
        ("sigmorphon", ["task.language=hin"], ["recurrent-hin", "transformer-hin"]),
        ("sigmorphon", ["variant=recurrent-jpn"], ["recurrent-jpn"]),
        ("spoken_digits", ["task=sounds", *FILES], ["sounds"]),
        ("heads_and_width", ["model.heads=8"], ["heads-8"]),
        ("detr", ["task=boxes", *FILES], ["softmax", "linear", "vectors"]),
        ("cora", ["task=nodes", "task.graph=g.npz"], ["gat", "dot", "linear", "gcn"]),
    ],
)
def test_variants_are_the_requested_ones_with_their_names(file, given, names):
    assert list(resolved(file, *given).variants()) == names


def test_the_requested_model_is_trained():
    (model,) = {each.model for each in resolved("dates", "model=bahdanau").variants().values()}
    assert model == MODELS["bahdanau"]
    (model,) = {each.model for each in resolved("g2p", "model=bahdanau").variants().values()}
    assert model == replace(MODELS["bahdanau"], width=128, layers=3, dropout=0.2)
    # A model of the same class as in the file still compares the attentions of the file.
    assert len({each.model for each in resolved("dates", "model=transformer").variants().values()}) == 2


def test_a_field_that_is_varied_is_set_in_every_variant():
    given = ["task=images", "task.train=F"]
    found = resolved("vit_vs_cnn", *given, "train.steps=1234")
    assert {each.train.steps for each in found.variants().values()} == {1234}
    assert list(found.variants()) == list(load_study(EXPERIMENTS / "vit_vs_cnn.py").variants())
    assert found.base.train.steps == 1234
    # Published numbers and bands are dropped, because they are for another number of steps.
    assert resolved("vit_vs_cnn", "train.steps=1234").bands == {}
    # It makes no difference that some variants have the given value.
    found = resolved("vit_vs_cnn", *given, "train.steps=1500")
    assert [each.train.steps for each in found.variants().values()] == [1500] * 9


def test_a_model_name_within_variant_names_is_not_confused():
    words = "no variant has model=recurrent; variant=recurrent-hun,recurrent-jpn selects the variants of"
    with pytest.raises(ValueError, match=f"^{words} that name$"):
        resolved("sigmorphon", "model=recurrent")


def test_a_task_without_user_files_suggests_tasks_that_read_them():
    with pytest.raises(
        ValueError, match=r"^task.train: Spoken has no field 'train'.*; to read your own files, set task=sounds$"
    ):
        resolved("spoken_digits", "task.train=DIR")


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.py")), ids=lambda path: path.stem)
def test_every_shipped_file_takes_a_variant_by_name_and_a_field_for_all(path):
    study = load_study(path)
    for name, experiment in list(study.variants().items())[-3:]:
        assert apply(study, [f"variant={name}"]).variants() == {name: experiment}
    # A preview has no warning that the learning rate does not reach its peak.
    assert warmups(study.variants(quick=True)) == []
    found = apply(study, ["train.seeds=7", "train.steps=4321"])
    assert {(each.train.seeds, each.train.steps) for each in found.variants().values()} == {(7, 4321)}


def test_a_task_of_text_without_targets_keeps_its_own_units():
    assert inherit(Copy(), Text()).config == Text()
