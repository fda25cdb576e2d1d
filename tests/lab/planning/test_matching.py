"""Tests of matched variants. Costs are traced or computed by a formula, and nothing is compiled."""

import math
import re
from dataclasses import dataclass, replace

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.lab import launch
from attnlab.lab.planning.costs import describe
from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.planning.matching import matched
from attnlab.lab.planning.summary import settings as shown
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study import serialize
from attnlab.lab.study.study import Experiment, Study, change
from attnlab.lab.study.variation import Variation, over
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.modules.position import POSITIONS
from tests.lab.planning.formula import BASE, Formula, off, two

GATED = MECHANISMS["gated-linear"]
STUDY = Study(
    BASE, over("model.decoder", softmax=Softmax(), linear=Linear(), gated=GATED), match="parameters", name="equal"
)


@pytest.fixture(scope="module")
def ledger():
    """Returns one ledger for all tests of this module, so that nothing is counted twice."""
    return Ledger()


def test_parameters_agree_and_changes_are_reported(ledger):
    found = matched(STUDY, ledger)
    target = ledger.parameters(BASE)
    assert found.experiments["softmax"] == STUDY.variants()["softmax"]
    gated, before = found.experiments["gated"], STUDY.variants()["gated"]
    assert off(ledger.parameters(before), target) > 0.02
    assert off(ledger.parameters(gated), target) < 0.005
    assert gated.model.width % gated.model.heads == 0
    assert change(gated, **{"model.width": 32, "model.feedforward": 64}) == before
    told = f"parameters {ledger.parameters(before):,} → {ledger.parameters(gated):,}"
    # The decoder of the base has softmax as well, but the base does not set the field that the variant sets.
    base = "the base of the study, a Transformer that is not one of its variants"
    assert found.lines[0] == f"matched to {base}: parameters {target:,}"
    assert f"feed-forward 64 → {gated.model.feedforward}, {told} (" in found.lines[3]
    assert found.lines[1] == f"  softmax  unchanged, parameters {target:,} (+0.00%)"


def test_no_other_feed_forward_width_is_closer(ledger):
    gated = matched(STUDY, ledger).experiments["gated"]
    inner, target = gated.model.feedforward, ledger.parameters(BASE)
    distance = [abs(ledger.parameters(change(gated, **{"model.feedforward": inner + n})) - target) for n in (-1, 0, 1)]
    assert min(distance) == distance[1]


def test_matching_a_variant_does_not_depend_on_other_variants(ledger):
    alone = replace(STUDY, vary=over("model.decoder", gated=GATED))
    assert matched(alone, Ledger(ledger.problems)).experiments["gated"] == matched(STUDY, ledger).experiments["gated"]


def test_without_a_match_nothing_is_loaded():
    ledger = Ledger()
    study = replace(STUDY, match=None)
    found = matched(study, ledger)
    assert (found.experiments, found.lines) == (study.variants(), [])
    assert not ledger.problems


def test_matched_widths_fit_heads_and_position(ledger):
    # Rotary positions need an even width of each of the two heads.
    base = change(BASE, **{"model.position": POSITIONS["rotary"]})
    study = Study(base, over("model.layers", one=1, two=2), match="parameters")
    deep = matched(study, ledger).experiments["two"]
    assert deep.model.width < 32
    assert deep.model.width % 4 == 0
    assert off(ledger.parameters(deep), ledger.parameters(base)) < 0.02


def test_a_derived_feed_forward_width_stays_derived_until_it_is_matched(ledger):
    base = change(BASE, **{"model.feedforward": None})
    found = matched(Study(base, over("model.layers", one=1, two=2), match="parameters"), ledger)
    assert found.experiments["one"].model.feedforward is None
    assert found.experiments["two"].model.feedforward is not None
    assert "feed-forward 128 → " in found.lines[2]


def test_fields_set_by_a_variant_are_kept(ledger):
    found = matched(Study(BASE, over("model.width", narrow=24, same=32), match="parameters"), ledger).experiments
    assert found["narrow"].model.width == 24
    assert found["narrow"].model.feedforward > 64
    # With one head, neighbouring widths differ by at most two.
    base = change(BASE, **{"model.heads": 1})
    found = matched(Study(base, over("model.feedforward", more=84, same=64), match="parameters"), ledger).experiments
    assert (found["more"].model.feedforward, found["same"]) == (84, base)
    assert found["more"].model.width < 32


def test_a_model_without_feed_forward_stays_without(ledger):
    base = change(BASE, **{"model.feedforward": 0, "model.heads": 1, "model.width": 48})
    found = matched(Study(base, over("model.layers", one=1, two=2), match="parameters"), ledger).experiments["two"]
    assert found.model.feedforward == 0
    assert found.model.width < 48
    assert off(ledger.parameters(found), ledger.parameters(base)) < 0.02


def test_an_impossible_match_reports_the_closest_value(ledger):
    study = Study(BASE, over("model.width", wide=128), match="parameters")
    wide = ledger.parameters(change(BASE, **{"model.width": 128, "model.feedforward": 1}))
    words = (
        f"match='parameters': wide cannot be matched: the nearest is parameters {wide:,} at model.width=128, "
        f"model.feedforward=1, the base has {ledger.parameters(BASE):,} "
        f"(+{100 * (wide / ledger.parameters(BASE) - 1):.2f}%, at most 2% is allowed)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        matched(study, ledger)
    fixed = Study(BASE, Variation({"both": {"model.width": 16, "model.feedforward": 8}}), match="parameters")
    with pytest.raises(
        ValueError, match=r"both cannot be matched: .* at model.width=16, .* \(−.*%, at most 2% is allowed\)$"
    ):
        matched(fixed, ledger)


def test_the_decoding_state_is_matched_by_the_width_alone_at_the_longest_example(ledger):
    base = change(BASE, **{"model.mechanism": Linear(), "model.width": 128, "model.heads": 1})
    study = Study(base, over("model.layers", one=1, two=2), match="state")
    found = matched(study, ledger)
    two = found.experiments["two"]
    assert two.model.feedforward == 64
    assert two.model.width < 128
    assert off(ledger.state(two), ledger.state(base)) <= 0.02
    shape = ledger.problem(base).shape
    assert found.lines[0].endswith(f" for an example of {shape.source_length} + {shape.target_length} tokens")


@dataclass(frozen=True)
class Odd:
    """A model without widths, which does not decode."""

    size: int = 3

    def create(self, key, shape):
        """Returns `size` numbers."""
        return {"w": jnp.zeros(self.size)}


@dataclass(frozen=True)
class Wide(Odd):
    """A model with a width and no feed-forward layer."""

    width: int = 100

    def create(self, key, shape):
        """Returns `size` numbers for each component of the width."""
        return {"w": jnp.zeros((self.width, self.size))}


def test_a_model_without_widths_is_refused_by_name(ledger):
    odd = Study(Experiment(BASE.task, Odd()), over("model.size", a=3, b=4), match="parameters")
    with pytest.raises(ValueError, match=r"^match='parameters': the Odd of a has neither width nor feedforward$"):
        matched(odd, ledger)
    with pytest.raises(ValueError, match=r"^match='state': the Odd of the base has no decoding state$"):
        matched(replace(odd, match="state"), ledger)


def test_a_model_with_a_width_alone_is_matched_by_it(ledger):
    study = Study(Experiment(BASE.task, Wide()), over("model.size", three=3, four=4), match="parameters")
    assert matched(study, ledger).experiments["four"].model.width == 75
    with pytest.raises(
        ValueError, match=r"the nearest is parameters 260 at model.width=1, .* \(−13.33%, at most 2% is allowed\)$"
    ):
        matched(replace(study, vary=over("model.size", big=260)), ledger)


@settings(max_examples=25, deadline=None)
@given(dearer=st.floats(0.2, 3.0), power=st.floats(1.0, 3.0), width=st.sampled_from([32, 64, 256]))
def test_flops_agree_after_few_evaluations(dearer, power, width):
    ledger = Formula(dearer=dearer, power=power)
    study = two("flops", **{"model.width": width, "model.feedforward": 2 * width})
    found = matched(study, ledger).experiments
    assert found["softmax"] == study.base
    assert off(ledger.flops(found["linear"]), ledger.flops(study.base)) <= 0.02
    assert len(ledger.asked) <= 9


@dataclass(frozen=True)
class State(Formula):
    """A ledger that computes the size of the decoding state by a formula. A part does not grow with the width."""

    def wide(self, width):
        """Returns the state of linear attention at this width, in bytes."""
        return int(100 * self.dearer * width**self.power + 5e4)

    def state(self, experiment):
        """Returns the state of an experiment in bytes. That of softmax attention is the same at any width."""
        return self.wide(experiment.model.width) if isinstance(experiment.model.mechanism, Linear) else int(3e5)


@settings(max_examples=25, deadline=None)
@given(dearer=st.floats(1, 5), power=st.floats(1.2, 3), heads=st.sampled_from([2, 8]))
def test_matching_finds_or_names_the_closest_configuration(dearer, power, heads):
    ledger = State(dearer=dearer, power=power)
    costs = [ledger.wide(width) for width in range(heads, 1000, heads)]
    nearest = min(costs, key=lambda cost: abs(math.log(cost / 3e5)))
    vary = over("model.mechanism", linear=Linear())
    study = Study(change(BASE, **{"model.heads": heads}), vary, match="state")
    if off(nearest, 3e5) <= 0.02:
        assert off(ledger.state(matched(study, ledger).experiments["linear"]), 3e5) <= 0.02
    else:
        with pytest.raises(
            ValueError,
            match=f"linear cannot be matched: the nearest is decoding state {nearest:,} B at .*, the base has",
        ):
            matched(study, ledger)


def test_a_matched_study_is_shown_as_it_will_run(ledger):
    found = matched(STUDY, ledger)
    lines = shown(STUDY, found)
    assert lines[1] == "3 variants × 2 seeds × 1 learning rate = 6 lanes"
    assert lines[3 : 3 + len(found.lines)] == found.lines
    inner = found.experiments["gated"].model.feedforward
    assert any(line.split()[-2:] == ["gated:", str(inner)] for line in lines)
    alone = replace(STUDY, vary=over("model.decoder", gated=GATED))
    (row,) = describe(alone, matched(alone, ledger))
    assert row["parameters"] == ledger.parameters(found.experiments["gated"])
    assert row["training"] == row["lanes"] * row["steps"] * row["flops"] == 2 * 12 * row["flops"]


def test_a_run_keeps_the_matched_configuration_and_finds_it_again(ledger, tmp_path, untrained):
    launch.run(STUDY, tmp_path)
    kept = RunFolder(tmp_path / "equal" / "gated").read("experiment")
    assert kept is not None
    assert (kept["match"], kept["budget"]) == ("parameters", "steps")
    assert kept["experiment"] == serialize.write(matched(STUDY, ledger).experiments["gated"])
    launch.run(STUDY, tmp_path)
    with pytest.raises(ValueError, match=r"gated contains another configuration \(model.feedforward was "):
        launch.run(replace(STUDY, match=None), tmp_path)


def test_variants_that_become_equal_by_matching_are_refused(ledger):
    sizes = over("model", small=BASE.model, large=replace(BASE.model, width=64))
    assert len(matched(Study(BASE, sizes), ledger).experiments) == 2
    with pytest.raises(
        ValueError, match=r"^match='parameters': after solving, 'small' and 'large' are the same experiment"
    ):
        matched(Study(BASE, sizes, match="parameters"), ledger)
    # A preview is not checked for this, because its results are not kept.
    assert len(matched(Study(BASE, sizes, match="parameters"), ledger, quick=True).experiments) == 2
