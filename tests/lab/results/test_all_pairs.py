"""Tests of comparisons of all pairs: which pairs are compared, and verdicts corrected for all of them."""

from dataclasses import replace

import pytest
from rich.console import Console
from scipy.stats import ttest_rel

from attnlab.lab.reporting.matrix import matrices
from attnlab.lab.reporting.verdict_text import basis
from attnlab.lab.results.comparison import comparison
from attnlab.lab.results.table import _matrices
from attnlab.lab.runs.study_file import read_study_file, write_study_file
from attnlab.lab.study.overrides import apply
from attnlab.lab.study.study import Study
from attnlab.lab.study.variation import Variation
from tests.lab.made import outcome
from tests.small import EXPERIMENT

ROWS = {
    "a": [0.90, 0.91, 0.90, 0.92],
    "b": [0.80, 0.80, 0.81, 0.82],
    "c": [0.90, 0.92, 0.91, 0.92],
    "d": [0.70, 0.73, 0.70, 0.70],
}


def study(rows=ROWS):
    """Returns the outcomes of a study that compares all pairs."""
    found = [outcome(name, values, order=n) for n, (name, values) in enumerate(rows.items())]
    return [replace(one, experiment=one.experiment | {"all_pairs": True}) for one in found]


def test_the_legend_counts_the_verdicts():
    assert comparison(study()).pairs.legend().endswith("; the 6 verdicts hold jointly with 95% confidence")
    two = {name: ROWS[name] for name in "ab"}
    assert comparison(study(two)).pairs.legend().endswith("; the verdict holds with 95% confidence")


def holm(pvalues):
    """Returns adjusted p-values as in Holm's paper: the j-th smallest of m times m − j + 1, made non-decreasing."""
    adjusted, most = {}, 0.0
    for n, (name, p) in enumerate(sorted(pvalues.items(), key=lambda item: item[1])):
        most = adjusted[name] = max(most, min(1.0, p * (len(pvalues) - n)))
    return adjusted


def test_every_pair_is_compared_with_correction_for_all():
    pairs = comparison(study()).pairs
    names = [*ROWS]
    p = {(y, x): ttest_rel(ROWS[y], ROWS[x]).pvalue for n, x in enumerate(names) for y in names[n + 1 :]}
    assert pairs.verdicts.keys() == p.keys()
    for pair, expected in holm(p).items():
        assert pairs.verdicts[pair].p == pytest.approx(expected, rel=1e-9), pair
        assert pairs.verdicts[pair].comparisons == 6
        assert (pairs.word(*pair) in ("better", "worse")) == (expected <= 0.05)
    assert pairs.word("a", "d") == "better"
    assert pairs.word("d", "a") == "worse"


def test_verdicts_against_the_reference_equal_those_of_the_matrix():
    compared = comparison(study())
    assert compared.verdicts == {name: compared.pairs.verdicts[name, "a"] for name in "bcd"}
    assert "corrected for all 6 comparisons" in str(basis(compared))


def test_pairs_are_only_compared_on_request():
    compared = comparison([replace(one, experiment=one.experiment | {"all_pairs": None}) for one in study()])
    assert compared.pairs is None
    assert {verdict.comparisons for verdict in compared.verdicts.values()} == {3}


def test_unfinished_pairs_count_in_the_correction():
    found = study()
    waiting = replace(found[3], result=None, metrics={})
    pairs = comparison([*found[:3], waiting]).pairs
    assert pairs.pending == (("d", "a"), ("d", "b"), ("d", "c"))
    assert {verdict.comparisons for verdict in pairs.verdicts.values()} == {6}
    assert pairs.sign("a", "d") == pairs.sign("d", "a") == "…"
    # If the first variant has not finished, the others are still compared.
    first = replace(found[0], result=None, metrics={})
    assert comparison([first, *found[1:]]).pairs.verdicts.keys() == {("c", "b"), ("d", "b"), ("d", "c")}


def test_pairs_without_usable_values_count_in_the_correction():
    found = study()
    unusable = replace(found[3], result=found[3].result | {"seeds": []})
    pairs = comparison([*found[:3], unusable]).pairs
    assert pairs.refused.keys() == {("d", "a"), ("d", "b"), ("d", "c")}
    assert {verdict.comparisons for verdict in pairs.verdicts.values()} == {pairs.comparisons} == {6}


def test_only_variants_with_equal_evaluation_are_compared():
    found = [replace(one, experiment=one.experiment | {"comparable_part": str(n < 2)}) for n, one in enumerate(study())]
    pairs = comparison(found).pairs
    assert pairs.groups == (("a", "b"), ("c", "d"))
    assert pairs.verdicts.keys() == {("b", "a"), ("d", "c")}


def test_the_matrix_shows_every_pair_on_terminal_and_page(capsys):
    rows = ROWS | {"e": [0.5]}
    pairs = comparison(study(rows)).pairs
    Console(width=80).print(*_matrices(comparison(study(rows))), sep="\n")
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    table = {row[1]: row[2:] for row in printed if len(row) > 2 and row[0].isdigit() and row[1] in rows}
    for one in rows:
        assert table[one] == [pairs.sign(one, other) for other in rows if other != one]
    assert pairs.sign("e", "a") == "·"
    page = "".join(map(str, matrices(pairs)))
    assert 'title="a compared with d: better">+<' in page
    assert 'title="d compared with a: worse">−<' in page
    assert "are not compared: a paired comparison needs at least two common seeds, got" in page


def test_all_pairs_can_be_requested_in_the_file_or_on_the_command_line(tmp_path):
    asked = Study(EXPERIMENT, Variation({"a": {}, "b": {"train.warmup": 3}, "c": {"train.warmup": 4}}))
    found = apply(asked, ["against=all"])
    assert found.against == "all" == replace(asked, against="all").against
    assert apply(found, ["variant=a,b"]).against == "all"
    write_study_file(tmp_path, found)
    assert all(one["all_pairs"] is True and one["against"] is None for one in read_study_file(tmp_path).values())
    (note,) = write_study_file(tmp_path, asked)
    assert note == "the study compares other pairs of variants than before; verdicts are corrected for the new pairs"
    assert not any("all_pairs" in one for one in read_study_file(tmp_path).values())
    with pytest.raises(ValueError, match=r"^against='b' must be all; "):
        apply(asked, ["against=b"])
    with pytest.raises(ValueError, match=r"^against='every' must be a dict"):
        replace(asked, against="every")
