"""What a run says of versions and machine where it went on with others."""

from attnlab.lab.versions import exchanged, onward, told

FIRST = {"jax": "1", "cores": 2}
OTHER = {"jax": "2", "cores": 2}


def test_one_that_stays_as_it_is_says_so_once():
    assert onward(FIRST, FIRST, 0) == onward(FIRST, FIRST, 12) == FIRST
    assert exchanged(FIRST, 12) is None
    assert told(FIRST) == FIRST


def test_what_it_went_on_with_stands_behind_what_was_first():
    record = onward(FIRST, OTHER, 12)
    assert record == {**FIRST, "later": [{"step": 12, **OTHER}]}
    assert onward(record, OTHER, 24) == record
    back = onward(record, FIRST, 1200)
    assert [one["step"] for one in back["later"]] == [12, 1200]
    assert (exchanged(record, 12), exchanged(back, 1200)) == ("jax 2 (was 1)", "jax 1 (was 2)")
    assert exchanged(record, 24) is None
    assert told(back) == {"jax": "1; from step 12: 2; from step 1,200: 1", "cores": 2}


def test_what_an_older_record_does_not_name_is_not_said_to_have_changed():
    now = FIRST | {"jax_enable_x64": False}
    record = onward(FIRST, now, 12)
    assert record["later"] == [{"step": 12, **now}], "it is recorded from here on"
    assert exchanged(record, 12) is None
    assert exchanged(onward(FIRST, now | {"cores": 4}, 12), 12) == "cores 4 (was 2)"


def test_what_was_trained_again_leaves_nothing():
    record = onward(onward(FIRST, OTHER, 12), FIRST | {"cores": 8}, 24)
    assert onward(record, FIRST, 12) == FIRST
    assert onward(record, OTHER, 18) == onward(FIRST, OTHER, 12)
    assert onward(record, OTHER, 0) == OTHER


def test_older_records_lack_a_fact_and_broken_ones_are_shown_without_it():
    assert told(onward({"jax": "1"}, FIRST, 12)) == {"jax": "1", "cores": "–; from step 12: 2"}
    for later in ("x", ["x"], [{}], [{"step": "x"}], {"step": 3}):
        assert told({**FIRST, "later": later}) == FIRST
