"""Tests of the record of versions and machine of a run that continued with others."""

from attnlab.lab.runs.environment_history import changed_at, changes_in_words, continued

FIRST = {"jax": "1", "cores": 2}
OTHER = {"jax": "2", "cores": 2}


def test_an_unchanged_environment_is_recorded_once():
    assert continued(FIRST, FIRST, 0) == continued(FIRST, FIRST, 12) == FIRST
    assert changed_at(FIRST, 12) is None
    assert changes_in_words(FIRST) == FIRST


def test_a_later_environment_is_added_after_the_first():
    record = continued(FIRST, OTHER, 12)
    assert record == {**FIRST, "later": [{"step": 12, **OTHER}]}
    assert continued(record, OTHER, 24) == record
    back = continued(record, FIRST, 1200)
    assert [one["step"] for one in back["later"]] == [12, 1200]
    assert (changed_at(record, 12), changed_at(back, 1200)) == ("jax 2 (was 1)", "jax 1 (was 2)")
    assert changed_at(record, 24) is None
    assert changes_in_words(back) == {"jax": "1; from step 12: 2; from step 1,200: 1", "cores": 2}


def test_facts_missing_in_older_records_are_not_reported_as_changed():
    now = FIRST | {"jax_enable_x64": False}
    record = continued(FIRST, now, 12)
    assert record["later"] == [{"step": 12, **now}], "it is recorded from here on"
    assert changed_at(record, 12) is None
    assert changed_at(continued(FIRST, now | {"cores": 4}, 12), 12) == "cores 4 (was 2)"


def test_retraining_from_scratch_clears_the_history():
    record = continued(continued(FIRST, OTHER, 12), FIRST | {"cores": 8}, 24)
    assert continued(record, FIRST, 12) == FIRST
    assert continued(record, OTHER, 18) == continued(FIRST, OTHER, 12)
    assert continued(record, OTHER, 0) == OTHER


def test_incomplete_and_malformed_records_are_shown_without_missing_facts():
    assert changes_in_words(continued({"jax": "1"}, FIRST, 12)) == {"jax": "1", "cores": "–; from step 12: 2"}
    for later in ("x", ["x"], [{}], [{"step": "x"}], {"step": 3}):
        assert changes_in_words({**FIRST, "later": later}) == FIRST
