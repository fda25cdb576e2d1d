import pytest

from attnlab.lab.folder import FolderError, RunFolder
from attnlab.lab.outcome import outcomes
from tests.lab.synthetic import write_run, write_study


def change(folder, **fields):
    run = RunFolder(folder)
    run.write("result", {**(run.read("result") or {}), **fields})


def test_the_best_leads_and_the_unfinished_follows(tmp_path):
    variants = {"a": {"finished": False}, "b": {"mean": 0.6}, "c": {"mean": 0.9}}
    write_study(tmp_path, variants, steps=40)
    assert [outcome.name for outcome in outcomes(tmp_path)] == ["c", "b", "a"]
    # Colours go by name, so that they stay when the order turns.
    assert [outcome.order for outcome in outcomes(tmp_path)] == [2, 1, 0]
    for name in ("b", "c"):
        change(tmp_path / name, higher=False)
    assert [outcome.name for outcome in outcomes(tmp_path)] == ["b", "c", "a"]


def test_other_folders_are_left_alone(tmp_path):
    write_study(tmp_path, steps=40)
    (tmp_path / "notes").mkdir()
    (tmp_path / "report.html").write_text("")
    write_run(tmp_path / ".hidden", "hidden", steps=40)
    assert {outcome.name for outcome in outcomes(tmp_path)} == {"softmax", "linear"}


def test_values_go_with_their_seeds(tmp_path):
    write_run(tmp_path / "a", "a", seeds=(4, 7, 9), died=(7,), steps=40)
    (outcome,) = outcomes(tmp_path)
    values = outcome.metrics["exact_match"].values
    assert outcome.by_seed("exact_match") == {4: values[0], 9: values[1]}
    assert [lane["seed"] for lane in outcome.lost()] == [7]
    # Seeds that diverged may stand among the others, without a value.
    change(tmp_path / "a", seeds=[4, 7, 9])
    assert outcomes(tmp_path)[0].by_seed("exact_match") == {4: values[0], 9: values[1]}
    change(tmp_path / "a", seeds=[4, 5, 7, 9])
    assert outcomes(tmp_path)[0].by_seed("exact_match") == {}


def test_lanes_and_steps_are_read_from_the_configuration(tmp_path):
    run = write_run(tmp_path / "a", "a", finished=False, steps=400)
    (outcome,) = outcomes(tmp_path)
    assert (outcome.lanes(), outcome.last_step(), outcome.planned_steps()) == (3, 100, 400)
    found = run.read("experiment") or {}
    found["experiment"]["train"] = {"seeds": 4, "learning_rate": [0.1, 0.2]}
    run.write("experiment", found)
    (outcome,) = outcomes(tmp_path)
    assert (outcome.lanes(), outcome.planned_steps()) == (8, None)


def test_what_is_no_number_is_none(tmp_path):
    write_run(tmp_path / "a", "a", steps=40)
    change(tmp_path / "a", metrics={"exact_match": {"mean": "1", "values": [True, 1e300, None, 0.5]}})
    estimate = outcomes(tmp_path)[0].metrics["exact_match"]
    assert (estimate.mean, estimate.low, estimate.values) == (None, None, (None, None, None, 0.5))
    assert not estimate.sound


def test_troubles_name_the_file_below_the_study(tmp_path):
    run = write_run(tmp_path / "a", "a", steps=40)
    run.file("experiment").unlink()
    change(run.path, seeds=["0"])
    (outcome,) = outcomes(tmp_path)
    assert outcome.result is None
    assert outcome.troubles == (
        "a/experiment.json: is missing",
        "a/result.json: the field 'seeds' must list whole numbers",
    )


def test_a_folder_without_runs(tmp_path):
    with pytest.raises(FolderError, match="no run in this folder"):
        outcomes(tmp_path)
