from collections import Counter

from attnlab.data.synthetic import reverse

SIZES = {"train": 5_000, "valid": 300, "test": 300}
LONGEST = {"train": 25, "valid": 30, "test": 30}


def test_targets_are_reversed_sources():
    parts = reverse.read(0, SIZES, LONGEST, 50)
    assert {part: len(examples) for part, examples in parts.items()} == SIZES
    for examples in parts.values():
        for source, targets, _ in examples:
            assert targets == (source[::-1],)


def test_lengths_and_integers_are_uniform_and_within_bounds():
    parts = reverse.read(0, SIZES, LONGEST, 50)
    lengths = Counter(len(example.source) for example in parts["train"])
    assert set(lengths) == set(range(1, 26))
    assert max(abs(n - 200) for n in lengths.values()) < 70  # five standard deviations
    assert max(len(example.source) for example in parts["test"]) == 30
    integers = Counter(int(symbol) for example in parts["train"] for symbol in example.source)
    assert set(integers) == set(range(50))
    assert max(integers.values()) < 1.3 * min(integers.values())


def test_sequences_are_a_function_of_the_seed():
    once = reverse.read(7, SIZES, LONGEST, 50)
    assert once == reverse.read(7, SIZES, LONGEST, 50)
    assert once != reverse.read(8, SIZES, LONGEST, 50)
    assert once["valid"] != once["test"]
