import pytest

from attnlab.data.io.files import DataError
from attnlab.data.repeats import ambiguous, distinct, repeated


def test_examples_of_an_earlier_part_are_counted_and_others_are_not():
    parts = {"train": ["a", "b", "b"], "valid": ["c", "c"], "test": ["b", "b", "c"]}
    assert repeated(parts) == ("test: 2 of 3 examples are also in train", "test: 1 of 3 examples is also in valid")
    assert repeated(dict.fromkeys(["valid", "test"], "a"), "lines") == ("test: 1 of 1 lines is also in valid",)


def test_parts_can_be_compared_with_one_part():
    parts = {"more": ["a", "b"], "valid": ["c"], "test": ["b", "c"]}
    assert repeated(parts, "lines", within="more") == ("test: 1 of 2 lines is also in more",)


def test_equal_inputs_with_several_answers_are_named_in_their_part():
    cat, dog = ("a", "cat", "1.png"), ("a", "dog", "2.png")
    parts = {"train": [cat, dog, cat], "valid": [cat, cat], "test": [dog]}
    line = "train: 1 picture is in several classes, of which only one can be correct: 1.png and 2.png"
    assert ambiguous(parts, "picture") == (line,)
    many = [(n, answer, "a very long source " * 9) for n in range(2) for answer in "xy"]
    (line,) = ambiguous({"test": many}, "source", "in several examples")
    assert line.startswith("test: 2 sources are in several examples, of which only one can be correct: a very long")
    assert line.endswith(" …")
    assert len(line) < 150


def test_one_file_as_two_parts_is_detected_under_any_name(tmp_path):
    one, link = tmp_path / "one", tmp_path / "link"
    one.write_text("text")
    link.symlink_to(one)
    other = tmp_path / "other"
    distinct({"train": str(one), "valid": str(other), "test": f"{one},{other}"})
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    distinct({"train": str(tmp_path / "loop"), "test": "a\0b"})
    for name in (str(link), f"{tmp_path}/./one", one):
        with pytest.raises(DataError, match=r"is both task\.train and task\.test; "):
            distinct({"train": str(one), "valid": str(other), "test": name})
    with pytest.raises(DataError, match=r"is both task\.valid and task\.test; "):
        distinct({"train": "a", "valid": f"{one},{other}", "test": f"{link},{other}"})
