import re
from dataclasses import replace

import jax
import pytest

from attnlab.console.tables import columns
from attnlab.lab.launch import run
from attnlab.lab.planning.summary import costs, flat, settings, show, summed
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.study import Experiment, Study, change
from attnlab.lab.study.variation import over
from attnlab.mechanisms import MECHANISMS, Softmax
from attnlab.models import Transformer
from attnlab.tasks import Recall
from tests.small import EXPERIMENT


def test_every_field_is_shown_by_its_override_path(toy):
    fields = flat(toy.base)
    assert fields["task"] == "copy"
    assert fields["task.languages"] == "en,de"
    assert fields["model.mechanism"] == "softmax"
    assert fields["model.mechanism.score"] == "dot"
    assert fields["model.cross"] == "none"
    assert fields["train.learning_rate"] == "0.001"
    assert "train" not in fields


def test_a_warm_up_longer_than_training_is_reported(toy):
    study = replace(toy.study, base=change(toy.base, **{"train.warmup": 400, "train.steps": 100}))
    wanted = "train.warmup=400 is longer than train.steps=100, so the learning rate reaches only 25.0% of its peak"
    assert any(line.endswith(wanted) for line in settings(study))
    assert not any("is longer than" in line for line in settings(toy.study))


def test_the_selection_of_variants_is_shown_before_their_fields(toy):
    chosen = apply(toy.study, ["model.mechanism=linear"])
    lines = settings(chosen)
    assert lines[2:5] == ["", "model.mechanism=linear selects 1 of 2 variants: linear", ""]
    assert not any(" selects " in line for line in settings(toy.study))


def test_other_values_than_a_study_are_refused(toy):
    for given, hint in ((toy.base, "Study(experiment) makes one"), ("a.py", "load_study(path) reads one")):
        for call in (show, run):
            with pytest.raises(TypeError, match=f"expected a Study, got .*; {re.escape(hint)}"):
                call(given)
    with pytest.raises(ValueError, match="task and model are swapped: "):
        Experiment(Transformer(), Recall())


def test_differing_fields_are_marked(toy):
    lines = settings(toy.study)
    assert lines[:3] == ["toy: which?", "2 variants × 2 seeds × 1 learning rate = 4 lanes", ""]
    assert [line.split() for line in lines if "model.mechanism" in line] == [
        ["≠", "model.mechanism", "softmax:", "softmax"],
        ["≠", "model.mechanism.score", "softmax:", "dot"],
        ["≠", "model.mechanism.block", "softmax:", "none"],
        ["≠", "model.mechanism.feature", "linear:", "elu+1"],
    ]
    assert sum(line.startswith("≠") for line in lines) == 4
    below = lines[lines.index(next(line for line in lines if "mechanism.block" in line)) + 1]
    assert below.split() == ["linear:", "32"]
    assert lines[-1].split() == ["decoder", "none"]


def test_a_single_variant_has_no_marks(toy):
    assert not any("≠" in line for line in settings(Study(toy.base)))


def test_a_user_mechanism_is_shown_by_its_class(toy):
    assert flat(change(toy.base, **{"model.mechanism": toy.Mine()}))["model.mechanism"] == "Mine"


def test_different_lanes_are_counted_together(toy):
    study = replace(toy.vary("train.seeds", few=2, many=5), name="x")
    assert settings(study)[1] == "2 variants, 7 lanes"


def test_costs_of_variants():
    rows = [
        {"variant": "softmax", "parameters": 1234567, "flops": 2.5e9, "state_bytes": 2048, "memory": None},
        {"variant": "linear", "parameters": 99, "flops": 1e3, "state_bytes": 10, "memory": 5e6, "new": 1.5},
    ]
    assert costs(rows) == [
        "variant  parameters  FLOPs per step  decoding state  weights and optimiser  new",
        "softmax   1,234,567       2.5 GFLOP         2.05 kB                      –    –",
        "linear           99         1 kFLOP            10 B                   5 MB  1.5",
    ]


def test_the_training_budget_is_shown():
    rows = [{"variant": "a", "lanes": 6, "steps": 1500, "training": 3.2e13}]
    assert costs(rows) == ["variant  lanes  steps  FLOPs, all lanes", "a            6  1,500          32 TFLOP"]
    assert summed(rows) == []
    assert summed([*rows, *rows]) == ["all 2 variants: 64 TFLOP"]


def test_nothing_is_compiled():
    """Checks that parameters, FLOPs and matched widths are computed from shapes and traces alone."""
    jax.clear_caches()
    heard = []
    listen = lambda event, seconds, **facts: heard.append(event)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        vary = over("model.mechanism", softmax=Softmax(), hedgehog=MECHANISMS["hedgehog"])
        study = Study(EXPERIMENT, vary, match="flops")
        assert "matched to softmax, the base of the study" in str(show(study))
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert "/jax/core/compile/jaxpr_trace_duration" in heard
    assert "/jax/core/compile/backend_compile_duration" not in heard


def test_columns_are_aligned():
    assert columns([["a", "bb"], ["ccc", "d"]]) == ["a    bb", "ccc  d"]
    assert columns([["a", "bb"], ["ccc", "d"]], right=True) == ["a    bb", "ccc   d"]
