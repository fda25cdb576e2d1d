from dataclasses import dataclass

import pytest

from attnlab.tasks.base import checks


@dataclass(frozen=True)
class Toy:
    size: int = 1
    seed: int = 0
    buckets: int = 3
    test_examples: int = 1


def test_valid_values_pass():
    for toy in (Toy(), Toy(size=2**31 - 1, seed=2**32 - 1, buckets=16)):
        checks.counts(toy, ["size"])
        checks.seed(toy)
        checks.buckets(toy)


def test_unused_fields_are_refused():
    checks.unused(Toy(size=2), "size", ["seed", "buckets"])
    with pytest.raises(ValueError, match=r"^task\.buckets=4 has no effect with task\.size=2$"):
        checks.unused(Toy(size=2, buckets=4), "size", ["seed", "buckets"])


@pytest.mark.parametrize("size", [0, -1, 2**31])
def test_counts_are_checked(size):
    with pytest.raises(ValueError, match=rf"task\.size={size} must be a whole number in 1 … "):
        checks.counts(Toy(size=size), ["size"])


def test_examples_are_held_in_memory():
    checks.examples(Toy(test_examples=10_000_000), ["test"])
    with pytest.raises(ValueError, match=r"task\.test_examples=2147483647 must be a whole number in 1 … 10000000"):
        checks.examples(Toy(test_examples=2**31 - 1), ["test"])


def test_a_bool_is_no_count():
    with pytest.raises(ValueError, match=r"task\.size=True"):
        checks.counts(Toy(size=True), ["size"])


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_of_32_bits(seed):
    with pytest.raises(ValueError, match=r"task\.seed"):
        checks.seed(Toy(seed=seed))


@pytest.mark.parametrize("buckets", [0, 17])
def test_buckets_are_checked(buckets):
    with pytest.raises(ValueError, match=r"task\.buckets"):
        checks.buckets(Toy(buckets=buckets))
