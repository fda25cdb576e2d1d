import hashlib
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from attnlab.lab.study.serialize import ABSENT, completed, difference, identity, read, write
from attnlab.lab.study.study import change


def again(config):
    return read(json.loads(json.dumps(write(config), allow_nan=False)))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model.mechanism": "softmax-blocks"},
        {"model.mechanism": "linear", "model.mechanism.block": 7},
        {"model.window": (3, 0), "model.tied": True, "model.hidden": 9},
        {"train.seeds": (4, 5), "train.learning_rate": (1e-3, 1e-4)},
        {"task.languages": ()},
    ],
)
def test_experiments_round_trip(toy, changes):
    mechanism = changes.get("model.mechanism")
    if mechanism:
        changes = changes | {"model.mechanism": toy.tables["MECHANISMS"][mechanism]}
    config = change(toy.base, **changes)
    assert again(config) == config
    assert identity(again(config)) == identity(config)


def test_functions_and_nested_registries_round_trip(toy):
    linear = change(toy.base, **{"model.mechanism": toy.Linear(feature=toy.Taylor(order=3))})
    score = change(toy.base, **{"model.mechanism": toy.Softmax(score=toy.cosine)})
    assert again(linear) == linear
    assert again(score).model.mechanism.score is toy.cosine
    assert write(score)["model"]["fields"]["mechanism"]["fields"]["score"] == {
        "registry": "SCORES",
        "name": "cosine",
    }


def test_the_name_is_that_of_the_equal_instance_else_the_first_of_the_class(toy):
    assert write(toy.Softmax(block=8))["name"] == "softmax-blocks"
    assert write(toy.Softmax(block=16)) == {
        "registry": "MECHANISMS",
        "name": "softmax",
        "fields": {"score": {"registry": "SCORES", "name": "dot"}, "block": 16},
    }


def test_missing_fields_have_their_default(toy):
    written = write(toy.base)
    del written["model"]["fields"]["dropout"], written["train"]["clip"]
    assert read(written) == toy.base


def test_fields_missing_in_older_configurations_have_their_earlier_value(toy, monkeypatch):
    """Checks that a field added later is read from an older configuration with the value that applied then."""
    older = write(toy.base)
    del older["model"]["fields"]["norm"], older["train"]["clip"]
    text = json.dumps(older, sort_keys=True, separators=(",", ":"))
    named = hashlib.sha256(re.sub(r"(\d)\.0\b", r"\1", text).encode()).hexdigest()
    assert toy.base.model.norm == "layer"
    monkeypatch.setattr(toy.Net, "missing_values", {"norm": "rms"}, raising=False)
    assert read(older) == change(toy.base, **{"model.norm": "rms"})
    # A written value takes precedence. A name without fields is the registered value.
    assert read(write(toy.base)) == toy.base
    assert read({"registry": "MODELS", "name": "net"}, toy.Net).norm == "layer"
    assert difference(completed(older), write(toy.base)) == [("model.norm", "rms", "layer")]
    # Checkpoints of the older configuration keep their identity, which is the hash of its text.
    assert identity(older) == named != identity(read(older))
    assert completed({"no": "experiment"}) == {"no": "experiment"}


def test_older_runs_keep_the_values_they_were_trained_with():
    from attnlab.mechanisms import MECHANISMS
    from attnlab.mechanisms.base import Mechanism
    from attnlab.modules.position import POSITIONS, Position
    from attnlab.ops.feature import FEATURES, Feature

    mechanism = lambda name, **fields: read({"registry": "MECHANISMS", "name": name, "fields": fields}, Mechanism)
    for name in ("delta", "gated-delta", "kda"):
        assert mechanism(name) == replace(MECHANISMS[name], scale_queries=False, epsilon=0.0)
        assert mechanism(name, epsilon=1e-6, scale_queries=True) == MECHANISMS[name]
    assert mechanism("gated-linear") == replace(MECHANISMS["gated-linear"], scale_queries=False)
    assert mechanism("reformer") == replace(MECHANISMS["reformer"], scale_queries=True)
    older = {"registry": "FEATURES", "name": "hedgehog", "fields": {}}
    assert read(older, Feature) == replace(FEATURES["hedgehog"], joint=True)
    assert mechanism("hedgehog", feature=older).feature.joint
    grid = read({"registry": "POSITIONS", "name": "sinusoidal-2d", "fields": {"columns": 7}}, Position)
    assert grid == replace(POSITIONS["sinusoidal-2d"], columns=7, normalised=False)
    for name in ("retention", "lightning"):
        assert mechanism(name) == MECHANISMS[name]


def test_a_user_mechanism_must_be_registered_first(toy):
    config = change(toy.base, **{"model.mechanism": toy.Mine(2.0)})
    hint = "Mine is not in attnlab.MECHANISMS; add it first: attnlab.MECHANISMS['mine'] = Mine()"
    with pytest.raises(ValueError, match=re.escape(f"model.mechanism: {hint}")):
        write(config)

    toy.tables["MECHANISMS"]["mine"] = toy.Mine()
    written = write(config)
    assert read(written) == config
    del toy.tables["MECHANISMS"]["mine"]
    hint = "add it first: attnlab.MECHANISMS['mine'] = … (on the command line in a Python file given by --code FILE"
    with pytest.raises(ValueError, match=f"^model.mechanism='mine' is not known; .*{re.escape(hint)}"):
        read(written)


def test_a_user_score_must_be_registered_first(toy):
    with pytest.raises(ValueError, match=r"^model.mechanism.score: <lambda> is not in attnlab.SCORES; add it"):
        write(change(toy.base, **{"model.mechanism.score": lambda q, k: q}))


def edited(toy, path, value):
    written = write(toy.base)
    *above, last = path
    node = written
    for name in above:
        node = node[name]
    node[last] = value
    return written


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (
            ("modle",),
            1,
            "modle: Experiment has no field 'modle'; nearest: 'model'; known: task, model, train",
        ),
        (("train", "step"), 1, "train.step: Train has no field 'step'; nearest: 'steps'"),
        (("train", "steps"), "many", "train.steps='many' must be a whole number"),
        (("train", "steps"), 1.5, "train.steps=1.5 must be a whole number"),
        (("train", "steps"), -1, "train.steps=-1 must be at least 1"),
        (("train", "steps"), [1], "train.steps=(1,) must be a whole number"),
        (("train",), 3, "train=3 must be a Train, set field by field"),
        (
            ("model", "name"),
            "nett",
            "model='nett' is not known; nearest: 'net'; known: net; if it is your own, add it",
        ),
        (("model", "registry"), ["os"], "model: registry \"['os']\" is not known"),
        (("model", "name"), {}, "model='{}' is not known"),
        (("model", "registry"), "os", "model: registry 'os' is not known"),
        (("model", "fields"), [], "model: the fields of Net must be an object, not []"),
        (("model", "fields", "heads"), 5, "model.heads=5 must divide model.width=64"),
        (("model", "fields", "norm"), "batch", "model.norm='batch' must be one of layer, rms"),
        (("model", "fields", "width"), None, "model.width=None must be a whole number"),
        (("model", "fields", "mechanism"), "softmax", "model.mechanism='softmax' must be"),
        (
            ("model", "fields", "mechanism"),
            {"a": 1},
            "model.mechanism: expected an object with registry and name",
        ),
        (("model", "fields", "mechanism", "fields", "blok"), 1, "model.mechanism.blok: Softmax has no field"),
        (("model", "fields", "mechanism"), {}, "model.mechanism: expected an object with registry"),
        (("task",), "copy", "task='copy' must be an object with registry and name"),
        (("task",), {"class": "os.system"}, "task: expected an object with registry and name"),
    ],
)
def test_altered_values_give_one_line_with_the_path(toy, path, value, words):
    with pytest.raises(ValueError, match="^" + re.escape(words)) as refusal:
        read(edited(toy, path, value))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("written", [None, 3, [], "x", {}, {"registry": "MODELS", "name": "net"}])
def test_other_json_is_refused(toy, written):
    with pytest.raises(ValueError, match=r"^configuration: "):
        read(written)


@dataclass(frozen=True)
class Open:
    """A config that takes anything."""

    path: Any = None
    train: Any = None


def test_unserializable_values_are_refused(toy):
    with pytest.raises(ValueError, match=r"^path: .*cannot be written as JSON and read back$"):
        write(Open(path=Path("x")))


def test_a_config_of_no_registry_is_written_plainly(toy):
    assert "registry" not in write(toy.base.train)
    assert read(write(toy.base.train), type(toy.base.train)) == toy.base.train


def test_differences_are_listed_by_path(toy):
    other = change(toy.base, **{"model.width": 128, "train.seeds": (0, 1), "model.mechanism": toy.Linear(block=3)})
    assert difference(toy.base, toy.base) == []
    assert difference(toy.base, other) == [
        ("model.width", 64, 128),
        ("model.mechanism", "softmax", "linear"),
        ("train.seeds", 2, [0, 1]),
    ]
    again = change(other, **{"model.mechanism.block": 4})
    assert difference(other, again) == [("model.mechanism.block", 3, 4)]
    assert difference(write(other), again) == [("model.mechanism.block", 3, 4)]
    cross = change(toy.base, **{"model.cross": toy.Linear()})
    assert difference(toy.base, cross) == [("model.cross", None, "linear")]


def test_another_name_for_the_same_class_is_no_difference(toy):
    blocks = change(toy.base, **{"model.mechanism": toy.Softmax(block=16)})
    before, named = write(blocks), identity(blocks)
    toy.tables["MECHANISMS"]["softmax-16"] = toy.Softmax(block=16)
    assert write(blocks)["model"]["fields"]["mechanism"]["name"] == "softmax-16"
    assert difference(before, blocks) == []
    assert identity(blocks) == named
    assert difference(toy.base, blocks) == [("model.mechanism.block", None, 16)]


def test_difference_of_an_older_writing(toy):
    written = write(toy.base)
    del written["train"]["clip"]
    assert difference(written, toy.base) == [("train.clip", ABSENT, 1.0)]


def test_equal_fields_have_equal_identity(toy):
    assert identity(toy.base) == identity(replace(toy.base))
    assert identity(change(toy.base, **{"train.clip": 1})) == identity(toy.base)
    assert identity(change(toy.base, **{"train.clip": 2.0})) != identity(toy.base)
    assert len(identity(toy.base)) == 64


def test_a_plain_config_must_be_one_its_field_names(toy):
    @dataclass(frozen=True)
    class Other:
        x: int = 1

    with pytest.raises(ValueError, match=r"^train: .*Other.* cannot be written"):
        write(Open(train=Other()))
