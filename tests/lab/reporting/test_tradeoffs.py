import re
from dataclasses import replace

from attnlab.lab.reporting.tradeoffs import tradeoffs
from attnlab.lab.results.estimates import rates
from tests.lab.made import outcome
from tests.lab.reporting.test_scatter import CROSS, DOT


def variant(name, order, **result):
    costs = {"state_bytes": 1000 * (order + 1), "seconds": 100.0, "flops": 1e9, "steps": 10, "learning_rate": 0.1}
    return outcome(name, [0.9, 0.8], order=order, **{**costs, **result})


def captions(markup):
    text = re.findall(r"<figcaption[^>]*>(.*?)</figcaption>", markup or "")
    return [re.sub("<[^>]*>", "", one) for one in text]


def test_a_figure_for_each_cost():
    found = [variant("a", 0), variant("b", 1)]
    assert captions(tradeoffs(found)) == [
        f"exact match against {cost}"
        for cost in ("decoding state", "training time, all lanes", "training FLOPs, one lane")
    ]
    assert tradeoffs(found[:1]) is None


def test_an_unknown_cost_is_not_drawn_and_its_variant_is_named():
    found = [variant("a", 0), variant("b", 1), variant("c", 2, state_bytes=None)]
    markup = tradeoffs(found)
    assert re.sub("<[^>]*>", "", markup).count("Not drawn, because a number is missing: c") == 1
    assert captions(tradeoffs([variant("a", 0, seconds=None), variant("b", 1)])) == [
        "exact match against decoding state",
        "exact match against training FLOPs, one lane",
    ]


def test_failed_variants_are_not_drawn():
    found = [variant("a", 0), variant("b", 1), replace(variant("c", 2), metrics=outcome("c", [0.9, None]).metrics)]
    assert "c" not in re.findall(r'aria-label="exact match against decoding state for ([^"]*)"', tradeoffs(found))[0]


def test_failed_variants_are_named_and_diverged_seeds_are_crosses():
    lost = [{"seed": 2, "learning_rate": 0.1, "step": 3}]
    found = [variant("a", 0), variant("b", 1, diverged=lost), replace(variant("c", 2), metrics={})]
    markup = tradeoffs(found)
    assert re.sub("<[^>]*>", "", markup).count("Not drawn, because a number is missing: c") == 3
    assert captions(markup)[0] == "exact match against decoding state; × marks seeds that diverged"
    assert len(re.findall(CROSS, markup)) == 3


def test_time_is_in_the_unit_that_fits():
    for seconds, unit in ((30.0, " s<"), (100.0, " min<"), (9000.0, " h<")):
        assert unit in tradeoffs([variant("a", 0, seconds=seconds), variant("b", 1, seconds=2 * seconds)])


def test_learning_rates_have_a_panel_each():
    entries = [{"learning_rate": rate, "values": [0.9, None if rate > 0.5 else 0.8]} for rate in (0.01, 0.1, 1.0)]
    found = [replace(variant(name, n), rates=rates(entries, [1.0], "x")) for n, name in enumerate("ab")]
    markup = tradeoffs(found)
    words = "exact match against learning rate on validation; the larger dot is the chosen rate; × marks seeds"
    assert captions(markup)[3].startswith(words)
    assert captions(markup)[4:] == ["a", "b"]
    panels = re.findall(r'<svg [^>]*aria-label="exact match against learning rate for .".*?</figure>', markup)
    assert [len(re.findall(DOT, panel)) for panel in panels] == [3, 3]
    assert [len(re.findall(CROSS, panel)) for panel in panels] == [1, 1]
    marks = [re.findall(r'<use href="#([^"]*)"[^>]*stroke:var\(--page\)', panel) for panel in panels]
    assert [sorted(map(found.count, set(found))) for found in marks] == [[1, 2], [1, 2]]  # one of the dots is larger
    # With a single learning rate there is no panel.
    assert "learning rate" not in tradeoffs([replace(one, rates=one.rates[:1]) for one in found])


def test_each_primary_metric_has_figures_of_its_own():
    costs = {"state_bytes": 1000, "learning_rate": 0.1}
    bits = [outcome(name, [2.05, 2.1], "bits", False, order=n, **costs) for n, name in enumerate("cd", 2)]
    entries = [{"learning_rate": rate, "values": [0.9, 0.8]} for rate in (0.01, 0.1)]
    found = [replace(one, rates=rates(entries, [], "x")) for one in (variant("a", 0), variant("b", 1), *bits)]
    markup = tradeoffs(found)
    told = [caption for caption in captions(markup) if "decoding state" in caption or "learning rate" in caption]
    assert [caption.split(" on ")[0] for caption in told] == [
        f"{metric} against {what}" for metric in ("exact match", "bits") for what in ("decoding state", "learning rate")
    ]
    labels = re.findall(r'aria-label="([^"]* against decoding state for [^"]*)"', markup)
    assert [label.split(" for ")[1] for label in labels] == ["a, b", "c, d"]
    # The only variant of a metric has nothing to be compared with, so it adds no figure.
    assert captions(tradeoffs([variant("a", 0), variant("b", 1), replace(bits[0], rates=())])) == captions(
        tradeoffs([variant("a", 0), variant("b", 1)])
    )
