import math
import re
from collections.abc import Callable
from typing import Any, Literal

import pytest

from attnlab.lab.study.values import fits, parse, text, wanted


@pytest.mark.parametrize(
    ("annotation", "given", "value"),
    [
        (int, "3", 3),
        (int, "-3", -3),
        (float, "1e-3", 1e-3),
        (float, "-2", -2.0),
        (float, "inf", math.inf),
        (bool, "true", True),
        (bool, "False", False),
        (str, "--help", "--help"),
        (str, "a,b", "a,b"),
        (str, "", ""),
        (Literal["a", "b"], "b", "b"),
        (Literal[1, 2], "2", 2),
        (int | None, "none", None),
        (int | None, "None", None),
        (int | None, "4", 4),
        (str | None, "x", "x"),
        (str | None, "none", None),
        (int | str, "3", 3),
        (int | str, "three", "three"),
        (tuple[int, ...], "0,1,2", (0, 1, 2)),
        (tuple[int, ...], "5", (5,)),
        (tuple[int, ...], "", ()),
        (tuple[str, ...], "en,de", ("en", "de")),
        (tuple[int, int], "2,-1", (2, -1)),
        (int | tuple[int, ...], "3", 3),
        (int | tuple[int, ...], "3,", (3,)),
        (int | tuple[int, ...], "0,1", (0, 1)),
        (float | tuple[float, ...], "1e-3,3e-3", (1e-3, 3e-3)),
        (float | tuple[float, ...], "1e-3", 1e-3),
    ],
)
def test_text_is_parsed_by_type(annotation, given, value):
    found = parse(annotation, given)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("annotation", "given", "words"),
    [
        (int, "3.5", "must be a whole number"),
        (int, "1e3", "must be a whole number"),
        (int, "", "must be a whole number"),
        (int, "3,4", "must be a whole number"),
        (int, "--help", "must be a whole number"),
        (float, "x", "must be a number"),
        (bool, "yes", "must be true or false"),
        (bool, "1", "must be true or false"),
        (Literal["a", "b"], "c", "must be one of a, b"),
        (int | None, "x", "must be a whole number, or none"),
        (int | tuple[int, ...], "1,x", "must be a whole number, or whole numbers separated by commas"),
        (tuple[int, int], "1", "must be 2 whole numbers separated by commas"),
        (tuple[int, int], "1,2,3", "must be 2 whole numbers separated by commas"),
        (Any, "3", "must be a value that only an experiment file can set"),
        (Callable, "print", "must be a value that only an experiment file can set"),
    ],
)
def test_invalid_text_names_the_expected_values(annotation, given, words, capfd):
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        parse(annotation, given)
    assert capfd.readouterr() == ("", "")


def test_a_config_is_set_field_by_field(toy):
    assert wanted(toy.Net) == "a Net, set field by field"


@pytest.mark.parametrize(
    ("value", "annotation", "does"),
    [
        (1, int, True),
        (True, int, False),
        (1, float, True),
        ("1", float, False),
        (None, int | None, True),
        (None, int, False),
        ((1, 2), tuple[int, ...], True),
        ((1, "x"), tuple[int, ...], False),
        ((1, 2), tuple[int, int, int], False),
        ("a", Literal["a"], True),
        ("b", Literal["a"], False),
        (True, Literal[1], False),
        ("anything", Any, True),
    ],
)
def test_values_fit_their_types(value, annotation, does):
    assert fits(value, annotation) is does


def test_a_config_fits_its_class_alone(toy):
    assert fits(toy.Softmax(), type(toy.Softmax()).__mro__[1])
    assert not fits("softmax", type(toy.Softmax()).__mro__[1])


def test_values_are_formatted_as_typed(toy):
    values = [None, True, 3, 1e-3, 0.1, 1 / 3, (1, 2), (5,), "x", toy.Linear(block=9), toy.cosine, math.inf]
    told = "none true 3 0.001 0.1 0.3333333333333333 1,2 5, x linear cosine inf"
    assert [text(value) for value in values] == told.split()
    assert text(toy.Mine()) == "Mine"
