"""Tests that variants train for an equal budget of FLOPs or seconds."""

from dataclasses import replace

import pytest

from attnlab.lab.planning.ledger import Ledger
from attnlab.lab.planning.matching import matched
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.variation import over
from attnlab.mechanisms import Linear, Softmax
from tests.lab.planning.formula import Formula, off, two


def test_a_budget_of_flops_scales_what_is_counted_in_steps():
    ledger = Formula(dearer=4.0)
    train = {"train.steps": 1000, "train.warmup": 100, "train.evaluate_every": 100, "train.save_every": 500}
    study = two(budget="flops", **train)
    found = matched(study, ledger)
    assert found.experiments["softmax"] == study.variants()["softmax"]
    linear = found.experiments["linear"].train
    share = ledger.flops(study.base) / ledger.flops(found.experiments["linear"])
    assert linear.steps == round(1000 * share) < 1000
    assert linear.warmup == round(100 * linear.steps / 1000)
    for every in ("evaluate_every", "save_every"):
        assert -(-linear.steps // getattr(linear, every)) == -(-1000 // getattr(study.base.train, every))
    assert found.experiments["linear"].model == study.variants()["linear"].model
    assert f"  linear   steps 1,000 → {linear.steps} (" in found.lines[2]


def test_a_budget_that_whole_steps_cannot_meet_is_refused_but_not_in_a_preview():
    study = replace(two(budget="flops", **{"train.steps": 3}), quick={"train.steps": 1})
    ledger = Formula(dearer=2.2)
    with pytest.raises(
        ValueError,
        match=r"^budget='flops': linear cannot meet the budget: the nearest is .* at train.steps=2, the base has",
    ):
        matched(study, ledger)
    preview = replace(study, quick={"train.steps": 4})
    assert matched(preview, ledger, quick=True).experiments["linear"].train.steps == 3


def test_a_budget_is_met_where_the_first_steps_are_cheaper():
    class Prepared(Formula):
        def flops(self, experiment):
            steps, dearer = experiment.train.steps, 1 if isinstance(experiment.model.mechanism, Softmax) else 1.5
            return (min(500, steps) + max(0, steps - 500) * 3 * dearer) / steps

    study, ledger = two(budget="flops", **{"train.steps": 1000}), Prepared()
    linear = matched(study, ledger).experiments["linear"]
    assert linear.train.steps == 833
    assert linear.train.steps * ledger.flops(linear) == pytest.approx(2000, rel=0.02)


def test_a_budget_of_seconds_takes_what_a_clock_measures():
    clock = lambda experiment, problem: 0.75 if isinstance(experiment.model.mechanism, Linear) else 0.25
    study = two(budget="seconds", **{"train.steps": 300})
    found = matched(study, Ledger(clock=clock))
    assert [each.train.steps for each in found.experiments.values()] == [300, 100]
    assert (
        found.lines[0] == "trained for the seconds of softmax, the base of the study: 1 min 15 s for all lanes together"
    )
    assert "  linear   steps 300 → 100 (+0.00%)" in found.lines[2]


def test_without_a_clock_seconds_are_left_for_when_it_runs():
    study = two(budget="seconds")
    found = matched(study, Ledger())
    assert found.experiments == study.variants()
    assert found.lines == [
        "trained for the seconds of softmax, the base of the study: the number of steps is measured when the study runs"
    ]


def test_a_base_that_is_no_variant_is_named_by_its_model():
    found = matched(replace(two(budget="seconds"), vary=over("model.mechanism", linear=Linear())), Ledger())
    assert found.lines[0].startswith(
        "trained for the seconds of the base of the study, a Transformer that is not one of its variants: the number"
    )


@pytest.mark.parametrize(
    "given",
    [
        *("variant=softmax task.symbols=4", "variant=softmax model.width=16", "variant=softmax train.steps=30"),
        *("variant=linear task.symbols=4", "variant=linear train.steps=30"),
        *("variant=softmax,linear task.symbols=4", "variant=softmax,linear model.width=16"),
    ],
)
def test_a_base_that_is_a_variant_after_overrides_is_named_by_it(given):
    study = apply(two(budget="seconds"), given.split())
    assert matched(study, Ledger()).lines[0].startswith("trained for the seconds of softmax, the base of the study")


def test_match_and_budget_can_be_combined():
    ledger = Formula(dearer=2.0)
    study = two("flops", "flops", **{"train.steps": 1000})
    linear = matched(study, ledger).experiments["linear"]
    assert linear.model.width < 32
    spent = linear.train.steps * ledger.flops(linear)
    assert off(spent, 1000 * ledger.flops(study.base)) < 1e-3
