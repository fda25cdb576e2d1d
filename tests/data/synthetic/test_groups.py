"""Checks tables of groups against matrices and permutations, which are multiplied in another way."""

from collections import Counter
from functools import reduce
from itertools import permutations

import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.rng import generator
from attnlab.data.synthetic import groups

ORDERS = {
    "z2": {1: 1, 2: 1},
    "z6": {1: 1, 2: 1, 3: 2, 6: 2},
    "s3": {1: 1, 2: 3, 3: 2},
    "s4": {1: 1, 2: 9, 3: 8, 4: 6},
    "a4": {1: 1, 2: 3, 3: 8},
    "a5": {1: 1, 2: 15, 3: 20, 5: 24},
    "s5": {1: 1, 2: 25, 3: 20, 4: 30, 5: 24, 6: 20},
    "a6": {1: 1, 2: 45, 3: 80, 4: 90, 5: 144},
    "d4": {1: 1, 2: 5, 4: 2},
    "d5": {1: 1, 2: 5, 5: 4},
    "q8": {1: 1, 2: 1, 4: 6},
    "a4xz5": {1: 1, 2: 3, 3: 8, 5: 4, 10: 12, 15: 32},
}


def then(first, second):
    """Returns the permutation that applies `first` and then `second`, written like "201"."""
    return "".join(second[int(point)] for point in first)


def turn(name, n):
    """Returns a symmetry of a polygon of n corners as a matrix. For example, "r2s" rotates twice after a reflection."""
    angle = 2 * np.pi * int(name.strip("rs")) / n
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return rotation @ np.diag([1, -1]) if name.endswith("s") else rotation


def quaternion(name):
    """Returns a unit quaternion as a matrix of complex numbers."""
    units = {"1": [[1, 0], [0, 1]], "i": [[1j, 0], [0, -1j]], "j": [[0, 1], [-1, 0]], "k": [[0, 1j], [1j, 0]]}
    return (-1 if name.startswith("-") else 1) * np.array(units[name.strip("-")])


@pytest.mark.parametrize("name", ORDERS)
def test_it_is_a_group_whose_elements_have_the_known_orders(name):
    group = groups.named(name)
    groups.check(group.table)
    (one,) = [n for n in range(len(group.table)) if group.table[n, n] == n]

    def order(element):
        found, power = 1, element
        while power != one:
            found, power = found + 1, group.table[power, element]
        return found

    assert Counter(map(order, range(len(group.names)))) == ORDERS[name]


@pytest.mark.parametrize("name", ["s2", "s3", "s4", "s5", "a3", "a4", "a5"])
def test_products_of_permutations_apply_the_first_factor_first(name):
    group, points = groups.named(name), int(name[1])
    inversions = lambda word: sum(a > b for n, a in enumerate(word) for b in word[n + 1 :])
    whole = ["".join(map(str, each)) for each in permutations(range(points))]
    assert sorted(group.names) == [word for word in whole if name[0] == "s" or inversions(word) % 2 == 0]
    for a, first in enumerate(group.names):
        assert [group.names[n] for n in group.table[a]] == [then(first, second) for second in group.names]
    moved = [sum(int(to) != at for at, to in enumerate(word)) for word in group.names]
    assert group.moved.tolist() == moved


@pytest.mark.parametrize(("name", "matrix"), [("d3", turn), ("d4", turn), ("d7", turn), ("q8", quaternion)])
def test_products_are_those_of_matrices(name, matrix):
    group = groups.named(name)
    matrices = [matrix(each, int(name[1])) if matrix is turn else matrix(each) for each in group.names]
    for a, left in enumerate(matrices):
        for b, right in enumerate(matrices):
            np.testing.assert_allclose(matrices[group.table[a, b]], left @ right, atol=1e-12)


def test_sums_and_direct_products():
    table = groups.named("z7").table
    assert all(table[a, b] == (a + b) % 7 for a in range(7) for b in range(7))
    group = groups.named("s3xz5")
    for a, first in enumerate(group.names):
        for b, second in enumerate(group.names):
            (p, x), (q, y) = first.split("|"), second.split("|")
            assert group.names[group.table[a, b]] == f"{then(p, q)}|{(int(x) + int(y)) % 5}"


@pytest.mark.parametrize("moved", [0, 2, 3])
def test_products_of_words_are_those_of_their_permutations(moved):
    group = groups.named("s5")
    words, products = groups.draw(generator(3), 40, 30, group, moved)
    assert words.dtype == products.dtype == np.int32
    used = set()
    for word, product in zip(words, products, strict=True):
        names = [group.names[n] for n in word]
        used |= {*names}
        for t in range(30):
            assert group.names[product[t]] == reduce(then, names[: t + 1])
    allowed = {word for word, points in zip(group.names, group.moved, strict=True) if not moved or points <= moved}
    assert used <= allowed
    assert len(allowed) == {0: 120, 2: 11, 3: 31}[moved]


def test_letters_are_uniform():
    words, _ = groups.draw(generator(0), 500, 120, groups.named("s3"))
    assert abs(np.bincount(words.ravel()) / words.size - 1 / 6).max() < 0.01


LOOP = ((0, 1, 2, 3, 4), (1, 0, 3, 4, 2), (2, 4, 0, 1, 3), (3, 2, 4, 0, 1), (4, 3, 1, 2, 0))  # a loop, not a group


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ((), "number of rows: 0"),
        (((0,),), "number of rows: 1"),
        (((0, 1), (1,)), "row 1 has 1 entries, but there are 2 rows"),
        (((0, 1), (1, 2)), "row 1 has the entry 2, which is not an element 0 … 1"),
        (((0, 1), (1, True)), "row 1 has the entry True"),
        (((0, 0), (1, 1)), "no element is an identity"),
        (((0, 1), (1, 1)), "element 1 has no inverse"),
        (LOOP, r"it is not associative: \(1·1\)·2 = 2, but 1·\(1·2\) = 4"),
    ],
)
def test_what_is_no_group_is_refused(rows, problem):
    with pytest.raises(ValueError, match=problem):
        groups.from_table(rows)


def test_a_table_may_have_its_identity_anywhere():
    assert groups.from_table(((1, 0), (0, 1))).table.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("text", ["0 1 2\n1 2 0\n\n2 0 1\n", "0,1,2\r\n1, 2, 0\r\n2,0,1"])
def test_a_table_is_read_from_a_file(tmp_path, text):
    path = tmp_path / "table.txt"
    path.write_text(text)
    assert groups.read(str(path)).table.tolist() == groups.named("z3").table.tolist()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 1\n1 x\n", "line 2: 'x' is not the number of an element"),
        ("0 1\n1 -1\n", "line 2: '-1' is not the number of an element"),
        ("0 1\n1 1\n", "is not the multiplication table of a group: element 1 has no inverse"),
        ("", "is not the multiplication table of a group: number of rows: 0"),
    ],
)
def test_a_file_that_holds_no_group_is_refused_with_its_name(tmp_path, text, problem):
    path = tmp_path / "table.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=problem) as error:
        groups.read(str(path))
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "'' is not a known group; known: zN"),
        ("z", "'z' is not a known group"),
        ("z0", "'z0' is not a known group"),
        ("s7", "'s7' is too large; N of sN is at most 6"),
        ("z721", "'z721' is too large"),
        ("z1", "'z1' is of order 1"),
        ("a5xs4", "'a5xs4' is of order 1440"),
        ("a4x", "'' is not a known group"),
    ],
)
def test_unknown_names_are_refused(name, problem):
    with pytest.raises(ValueError, match=problem):
        groups.named(name)
