import math
import re

import pytest

from attnlab.training.config import Train


def test_lanes_are_every_seed_at_every_rate():
    train = Train(seeds=(4, 9), learning_rate=(1e-3, 1e-2))
    assert train.lanes == ((4, 1e-3), (4, 1e-2), (9, 1e-3), (9, 1e-2))
    assert Train(seeds=2).seed_list == (0, 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("steps", 0), ("steps", -5), ("batch_size", 0), ("accumulate", 0), ("evaluate_every", 0), ("save_every", -1),
        ("warmup", -1), ("weight_decay", -0.1), ("clip", math.nan), ("beta1", 1.0),
        ("beta2", -0.1), ("beta2", math.nan), ("learning_rate", math.nan), ("learning_rate", 0.0),
        ("learning_rate", (1e-3, math.inf)), ("learning_rate", ()), ("learning_rate", (1e-3, 1e-3)),
        ("seeds", 0), ("seeds", ()), ("seeds", (1, 1)), ("seeds", (2**32,)), ("seeds", (-1,)),
        ("average", -1), ("average", 102), ("average_span", 1.5), ("average_span", math.nan), ("final_rate", -0.1),
        ("steps", 2**31), ("learning_rate", 1e-39), ("learning_rate", (1e-3, 3.5e38)), ("seeds", -1),
    ],
)  # fmt: skip
def test_invalid_values_are_refused_naming_the_field(field, value):
    with pytest.raises(ValueError, match=f"train.{field}="):
        Train(**{field: value})


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("steps", 16.5, "a whole number"), ("steps", math.nan, "a whole number"), ("steps", True, "a whole number"),
        ("batch_size", "4", "a whole number"), ("warmup", None, "a whole number"), ("seeds", True, "a whole number"),
        ("seeds", (0.5,), "whole numbers"), ("seeds", [0], "a whole number, or a tuple of whole numbers"),
        ("clip", "1", "a number"),
        ("learning_rate", [1e-3], "a number, or a tuple of numbers"), ("learning_rate", (1e-3, "x"), "numbers"),
        ("decay_all", 1, "true or false"), ("average_span", "x", "a number"),
        ("schedule", "foo", "one of constant, cosine, inverse_sqrt"), ("schedule", [], "one of constant"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_with_its_field(field, value, wanted):
    with pytest.raises(ValueError, match="^" + re.escape(f"train.{field}={value!r} must be {wanted}")):
        Train(**{field: value})


@pytest.mark.parametrize("early", [{"patience": 2}, {"target": 0.5}], ids=["patience", "target"])
def test_averaging_excludes_early_stopping(early):
    with pytest.raises(ValueError, match=r"train.average=2 requires a known last step, which train\.\w+=\S+ excludes"):
        Train(average=2, **early)


@pytest.mark.parametrize("seeds", [0, -1])
def test_a_number_of_seeds_below_one_is_refused(seeds):
    with pytest.raises(ValueError, match=f"train.seeds={seeds} must be a number of seeds in 1 … 65536"):
        Train(seeds=seeds)


@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt"])
def test_only_the_cosine_schedule_has_a_final_rate(schedule):
    with pytest.raises(ValueError, match=r"train.final_rate=0.1 requires train.schedule=cosine, got train.schedule="):
        Train(schedule=schedule, final_rate=0.1)
