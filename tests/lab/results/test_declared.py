import html
import re

import pytest

from attnlab.console.metric import Metric
from attnlab.lab.reporting import report
from attnlab.lab.reporting.notebook import table, verdicts
from attnlab.lab.results.comparison import comparison
from attnlab.lab.results.declared import declared, entries
from attnlab.lab.results.outcome import outcomes
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.statistics import summary
from tests.lab.synthetic import write_study

STRANGE = Metric("my_rate_of_nothing", "", 0, 7, higher=True)
FRACTION = Metric("token_loss", "%", 0, 1, higher=True)


def record(home, metric, values):
    """Writes a study whose runs have this primary metric, with these values by variant."""
    write_study(home, {name: {"margin": 0.5} for name in values}, steps=40, groups=())
    for name, found in values.items():
        run = RunFolder(home / name)
        whole = {metric.name: summary(found), f"{metric.name}.part": summary(found)}
        told = {"metrics": whole, "declared": entries([metric, Metric(f"{metric.name}.part", metric.unit, 0, 7)])}
        run.write("result", (run.read("result") or {}) | told | {"metric": metric.name, "higher": not metric.higher})
    return home


def test_a_declaration_round_trips():
    for metric in (STRANGE, FRACTION, Metric("loss"), Metric("perplexity", low=1)):
        assert declared({"declared": entries([metric])}, metric.name) == metric


def test_nothing_is_derived_from_the_name_of_a_metric():
    result = {"metric": "exact_match", "higher": True}
    assert declared(result, "exact_match") == Metric("exact_match", higher=True)
    assert declared(result, "word_error_rate") == Metric("word_error_rate")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unit": "s"}, "metric 'x': unit='s' must be one of '', '%', 'points'"),
        ({"unit": None}, "metric 'x': unit must be text, and higher must be true or false"),
        ({"higher": 1}, "metric 'x': unit must be text, and higher must be true or false"),
        ({"low": 2}, "metric 'x': low=2.0 must be below high=1.0"),
        ({"low": "0"}, "metric 'x': low and high must be numbers or null"),
        ({"high": True}, "metric 'x': low and high must be numbers or null"),
        ({"high": 10**400}, "metric 'x': low and high must be numbers or null"),
        (None, "metric 'x': must have the fields unit, low, high and higher"),
    ],
)
def test_malformed_declarations_give_one_line(tmp_path, changes, words):
    entry = 7 if changes is None else {"unit": "", "low": 0, "high": 1, "higher": True, **changes}
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        declared({"declared": {"x": entry}}, "x")
    home = write_study(tmp_path, {"a": {}}, steps=40)
    run = RunFolder(home / "a")
    run.write("result", (run.read("result") or {}) | {"declared": [] if changes is None else {"x": entry}})
    (found,) = outcomes(home)
    assert found.result is None
    assert found.troubles[0].startswith("a/result.json: declared: ")


def test_a_metric_with_an_unusual_name_follows_its_declaration(tmp_path):
    home = record(tmp_path, STRANGE, {"a": [6.5, 6.9, 6.2], "b": [1.0, 3.5, 0.5]})
    printed = repr(table(home))
    assert "my rate of nothing" in printed
    assert re.search(r"6\.53 \(5\.66–7\.00\)", printed)  # the interval ends where the range does
    assert re.search(r"1\.67 \(0–5\.66\)", printed)
    # Higher is better, as declared, although the field `higher` of the result says otherwise.
    assert [outcome.name for outcome in outcomes(home)] == ["a", "b"]
    assert comparison(outcomes(home)).references["b"].name == "a"
    said = repr(verdicts(home))
    assert "a: my rate of nothing 6.53 (95% interval 5.66–7.00, 3 seeds)." in said
    assert re.search(r"−4\.87 \(95% interval −[67]\.\d+ to −[0-9.]+, 3 pairs", said)
    assert "points" not in said
    page = html.unescape(report(home).read_text())
    assert "my rate of nothing by group, hardest first" in page
    assert "%" not in re.findall(r"6\.53\S*", page)[0]
    assert "my_rate_of_nothing" in (home / "table.csv").read_text()


def test_equality_at_the_worst_value_is_not_significant(tmp_path):
    home = record(tmp_path, STRANGE, {"a": [0.0] * 3, "b": [0.0] * 3})
    assert "every seed of both has 0, the worst possible value" in comparison(outcomes(home)).refused["b"]


def test_a_fraction_named_like_a_loss_is_a_fraction(tmp_path):
    home = record(tmp_path, FRACTION, {"a": [0.95, 0.99, 0.97], "b": [0.45, 0.5, 0.47]})
    assert "97.0% (92.0–100%)" in repr(table(home))
    said = repr(verdicts(home))
    assert "token loss 97.0%" in said
    assert re.search(r"Worse than a: −49\.7 points \(", said)
    assert "within 50 points" in said or "less than 50 points" in said
