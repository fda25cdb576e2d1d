import pytest

from attnlab.data.io.files import DataError
from attnlab.data.synthetic import questions

SIZES = {"train": 300, "valid": 50, "test": 60}


def test_questions_differ_and_are_a_function_of_the_seed():
    parts = questions.draw(0, SIZES)
    assert {part: len(examples) for part, examples in parts.items()} == SIZES
    assert len({example.source for part in parts.values() for example in part}) == 410
    assert parts == questions.draw(0, SIZES)
    assert parts != questions.draw(1, SIZES)


def test_the_first_word_does_not_determine_the_kind():
    examples = questions.draw(0, SIZES)["train"]
    kinds = {}
    for source, (kind,), _ in examples:
        assert "{" not in source
        kinds.setdefault(str(source).split()[0], set()).add(kind)
    assert kinds["what"] == set(questions.KINDS)
    assert len(kinds["how"]) == len(kinds["which"]) + 1 == len(kinds["in"]) == 2


def test_kinds_alternate():
    examples = questions.draw(2, SIZES)["train"]
    assert [kind for _, (kind,), _ in examples[:12]] == 2 * list(questions.KINDS)


def test_more_questions_than_the_grammar_has_are_refused():
    with pytest.raises(
        DataError, match=r"^10110 different questions are requested, but the grammar generates at most \d{4}$"
    ):
        questions.draw(0, SIZES | {"train": 10_000})
