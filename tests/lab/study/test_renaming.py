"""Names of variants after overrides: no name contradicts its variant."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.lab.study.load import load_study
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.study import Study
from attnlab.lab.study.variation import Variation, over, product
from attnlab.mechanisms import Linear

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
AMOUNTS = ("all", "tenth", "hundredth")


@pytest.mark.parametrize(
    ("file", "given", "names"),
    [
        ("g2p", ["model=bahdanau", "model.attention=luong"], ["bahdanau-attention-luong"]),
        ("dates", ["model=bahdanau", "model.attention=luong"], ["bahdanau-attention-luong"]),
        ("dates", ["model=bahdanau", "model.mechanism=linear"], ["bahdanau-linear"]),
        ("dates", ["model=bahdanau", "model.width=32"], ["bahdanau"]),
        ("dates", ["model.mechanism.feature=taylor"], ["softmax", "linear-taylor"]),
        # A model that keeps fields of the file's model is called by its own name.
        ("scan", ["model=luong"], ["simple-luong", "length-luong", "jump-luong"]),
        ("scan", ["model=bahdanau"], ["simple-bahdanau", "length-bahdanau", "jump-bahdanau"]),
        ("scan", ["task.split=simple", "model.cell=lstm"], ["gru-simple-cell-lstm", "transformer-simple"]),
        ("scan", ["task.split=simple", "model.layers=2"], ["gru-simple", "transformer-simple"]),
        ("source_marks", ["variant=rotary-end,gru-end", "model.position=alibi"], ["rotary-end-alibi", "gru-end"]),
        (
            "published_layers",
            ["variant=gla,gated-softmax", "model.mechanism=softmax"],
            ["gated-softmax", "gla-softmax"],
        ),
        ("published_layers", ["variant=gla", "model.mechanism=linear*1+softmax"], ["gla-linear+softmax"]),
        ("vit_vs_cnn", ["model=vit", "task.share=0.5"], [f"vit-{amount}-share-0.5" for amount in AMOUNTS]),
        ("vit_vs_cnn", ["model=vit", "task.share=1"], ["vit-all", "vit-tenth-share-1", "vit-hundredth-share-1"]),
        ("vit_vs_cnn", ["model=vit", "train.steps=1500", "task.share=1"], ["vit-steps-1500-share-1"]),
        ("vit_vs_cnn", ["model=vit", "train.steps=1500"], [f"vit-{amount}" for amount in AMOUNTS]),
        ("heads_and_width", ["variant=heads-8,width-32", "model.width=48"], ["heads-8", "width-32-width-48"]),
    ],
)
def test_no_name_contradicts_its_variant(file, given, names):
    assert list(apply(load_study(EXPERIMENTS / f"{file}.py"), given).variants()) == names


def test_a_recurrent_decoder_takes_a_mechanism_by_name():
    found = apply(load_study(EXPERIMENTS / "dates.py"), ["model=bahdanau", "model.mechanism=linear"])
    (variant,) = found.variants().values()
    assert (variant.model.attention, variant.model.mechanism) == ("bahdanau", Linear())


def test_renamed_variants_are_reported_in_one_line():
    found = apply(load_study(EXPERIMENTS / "scan.py"), ["model.cell=lstm"])
    assert found.notes == ("gru-simple, gru-length, gru-jump are now named with -cell-lstm added",)


def test_a_training_field_is_part_of_the_name_if_the_name_has_it(toy):
    together = {
        "few-5": {"task.languages": ("hu",), "train.steps": 5},
        "many": {"task.languages": ("en", "de"), "train.steps": 50},
    }
    found = apply(Study(toy.base, Variation(together)), ["train.steps=7"])
    assert list(found.variants()) == ["few-5-steps-7", "many"]
    alone = product(over("train.steps", short=5, long=50), over("model.width", a=64, b=128))
    assert list(apply(Study(toy.base, alone), ["train.steps=7"]).variants()) == ["a-7", "b-7"]


def test_comparisons_follow_renamed_and_merged_variants():
    study = load_study(EXPERIMENTS / "vit_vs_cnn.py")
    assert study.against["cnn-tenth"] == "vit-tenth"
    found = apply(study, ["task.share=0.5"])
    assert found.against == {f"{one}-share-0.5": f"{other}-share-0.5" for one, other in study.named.items()}
    merged = apply(study, ["task.share=0.5", "train.steps=7"])
    parts = ("cnn", "mlp")
    assert merged.against == {f"{one}-share-0.5-steps-7": "vit-share-0.5-steps-7" for one in parts}
    # A variant is not compared with itself.
    assert apply(study, ["model=mlp", "task.share=0.5", "train.steps=7"]).against == {}


def test_variants_that_would_have_the_same_name_keep_their_old_ones_with_the_value():
    """Checks a file in which some variants differ in a field that their common names do not have."""
    study = load_study(EXPERIMENTS / "capacity.py")
    found = apply(study, ["task.keys=40", "model.mechanism=sigmoid"])
    assert list(found.variants()) == ["softmax-40-sigmoid", "favor64-40-sigmoid"]
    assert [each.model.redrawn for each in found.variants().values()] == [False, True]
