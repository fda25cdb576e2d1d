import csv
import io

from attnlab.lab.reporting.csv_table import csv_text
from attnlab.lab.results.outcome import outcomes
from attnlab.lab.runs.run_folder import RunFolder
from tests.lab.synthetic import retell, write_run, write_study


def read(folder):
    return list(csv.DictReader(io.StringIO(csv_text(outcomes(folder)))))


def test_a_row_for_each_variant_and_seed(tmp_path):
    write_study(tmp_path, {"softmax": {}, "linear": {"mean": 0.9}}, steps=40, groups=("de",), seeds=(4, 7))
    found = read(tmp_path)
    assert [(row["variant"], row["seed"], row["state"]) for row in found] == [
        (name, seed, "finished") for name in ("softmax", "linear") for seed in ("4", "7")
    ]
    result = RunFolder(tmp_path / "linear").read("result") or {}
    for metric in ("exact_match", "loss", "exact_match.de"):
        assert [float(row[metric]) for row in found[2:]] == result["metrics"][metric]["values"]
    assert list(found[0])[:5] == ["variant", "state", "seed", "learning_rate", "exact_match"]
    assert float(found[0]["training_flops"]) == float(found[0]["flops"]) * 40
    assert {row["memory_bytes"] for row in found} == {"48500000.0"}


def test_a_missing_value_is_empty_with_a_reason(tmp_path):
    write_study(
        tmp_path, {"softmax": {"diverged": (1,)}, "linear": {}, "delta": {"finished": False}}, steps=40, groups=()
    )
    run = RunFolder(tmp_path / "linear")
    result = run.read("result") or {}
    result["metrics"]["exact_match"] |= {"mean": None, "values": [float("nan"), 0.5, 0.5]}
    run.write("result", result)
    found = {(row["variant"], row["seed"]): row for row in read(tmp_path)}
    assert (found["softmax", "1"]["state"], found["softmax", "1"]["exact_match"]) == ("diverged", "")
    assert float(found["softmax", "2"]["exact_match"]) > 0.9
    assert (found["linear", "0"]["state"], found["linear", "0"]["exact_match"]) == ("failed", "")
    assert found["linear", "0"]["loss"] != ""
    assert found["linear", "1"]["state"] == "finished"
    assert found["delta", ""]["state"] == "unfinished, 10 of 40 steps"


def test_names_cannot_become_formulas_or_break_rows(tmp_path):
    names = ["=1+1", "-2", "@x", "a,b", 'a"b', "a\nb", "softmax"]
    for n, name in enumerate(names):
        write_run(tmp_path / name, name, steps=40, groups=("=x",), seeds=(0,), order=n)
    assert {row["variant"] for row in read(tmp_path)} == {"'=1+1", "'-2", "'@x", "a,b", 'a"b', "a\nb", "softmax"}


def test_each_primary_metric_has_a_column_of_its_own(tmp_path):
    write_study(tmp_path, {"softmax": {}, "text": {"mean": 0.8}}, steps=40, groups=())
    retell(RunFolder(tmp_path / "text"), "bits_per_character", 2.5)
    found = read(tmp_path)
    assert list(found[0])[4:7] == ["exact_match", "bits_per_character", "loss"]
    for row in found:
        told, empty = ("exact_match", "bits_per_character")[:: 1 if row["variant"] == "softmax" else -1]
        assert (float(row[told]) > 0.9, row[empty]) == (True, "")
