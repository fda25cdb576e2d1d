import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.synthetic import dates
from attnlab.tasks.synthetic.dates import LANGUAGES, Dates


@pytest.fixture(scope="module")
def problem():
    return Dates(train_examples=8_000, valid_examples=200, test_examples=400).load()


def test_pairs_of_forty_languages(problem):
    assert problem.target.vocabulary.symbols == tuple("-0123456789")
    assert problem.shape.target_vocabulary == 14
    assert problem.shape.target_length == 12  # ten characters, END, and one to make a multiple of four
    assert 450 < problem.shape.source_vocabulary < 550
    assert 36 <= problem.shape.source_length <= 44
    assert problem.buckets.padding < 0.2


def test_scores_for_every_language(problem):
    answers = [{"tokens": batch["target"]} for batch in problem.eval_batches("test")]
    scores = problem.score("test", answers)
    assert set(scores) == {"exact_match"} | {f"exact_match.{language}" for language in LANGUAGES}
    assert set(scores.values()) == {1.0}
    assert (problem.metric.name, problem.metric.higher) == ("exact_match", True)


def test_a_limit_is_balanced_over_languages(problem):
    answers = [{"tokens": batch["target"]} for batch in problem.eval_batches("valid", 40)]
    assert len(problem.score("valid", answers, 40)) == 1 + 40


def test_prompts_are_normalised(problem):
    ids = problem.encode_prompt("5. März 2024")["source"]
    assert (problem.encode_prompt(" 5.\u00a0März  2024 ")["source"] == ids).all()
    with pytest.raises(DataError, match=r"U\+2602"):
        problem.encode_prompt("5. ☂ 2024")


def test_answers_are_iso_dates(problem):
    digits = problem.target.encode("2024-03-05")
    assert problem.format_answer({"tokens": np.array([[*digits, 2, 0]])}) == "2024-03-05"


def test_the_data_are_a_function_of_the_fields():
    small = Dates(languages=("de", "fr"), train_examples=200, valid_examples=20, test_examples=20)
    assert small.load().fingerprint == small.load().fingerprint
    assert small.load().fingerprint != Dates(**{**vars(small), "seed": 1}).load().fingerprint


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("train_examples", 0),
        ("valid_examples", -1),
        ("test_examples", 0),
        ("seed", -1),
        ("seed", 2**32),
        ("buckets", 0),
        ("languages", ()),
        ("languages", ("de", "de")),
        ("languages", 3),
    ],
)
def test_invalid_values_name_the_field(field, value):
    with pytest.raises(ValueError, match=rf"task\.{field}="):
        Dates(**{field: value})


def test_unknown_language_names_the_nearest():
    with pytest.raises(ValueError, match=r"task\.languages='en_UK' is not known; nearest: 'en_GB'"):
        Dates(languages=("de", "en_UK"))


def test_each_date_is_written_once_and_each_locale_is_read_once(monkeypatch):
    written, write = [], dates.write
    monkeypatch.setattr(dates, "write", lambda *given: written.append(given) or write(*given))
    dates._locale.cache_clear()
    Dates(train_examples=900, valid_examples=60, test_examples=40).load()
    # The check for ambiguous dates writes four days of each month in every form.
    assert len(written) == 1000 + 48 * sum(len(dates.forms(language)) for language in dates.LANGUAGES)
    assert dates._locale.cache_info().misses == len(dates.LANGUAGES)
