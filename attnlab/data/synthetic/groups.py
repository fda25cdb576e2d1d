"""Finite groups as multiplication tables, and words in them with the products of all prefixes.

A group of n elements is a table [n n] of ids 0 … n−1: `table[a, b]` is the id of the product a·b.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import permutations, product

import numpy as np

from attnlab.data.io.files import DataError, contents, text, user_path

LARGEST = 720  # the most elements of a group; S6 has as many
NAMES = "zN, sN, aN, dN, q8, and products such as a4xz5"


@dataclass(frozen=True)
class Group:
    """A finite group."""

    names: tuple[str, ...]
    """The name of each element [n]."""
    table: np.ndarray
    """The ids of the products [n n] int32."""
    moved: np.ndarray | None = None
    """The number of points that each element moves [n], or None if the elements are not permutations."""


@cache
def named(name: str) -> Group:
    """Returns a group by its name.

    - "zN": the cyclic group of order N. Products are sums modulo N.
    - "sN" and "aN": the permutations and the even permutations of N points, N up to 6. Element "201" sends 0 to 2, 1
      to 0 and 2 to 1. The product a·b applies a first and b second.
    - "dN": the dihedral group of order 2N. Element "r2s" is the product r·r·s of two rotations and a reflection.
    - "q8": the quaternion group.
    - "a4xz5": the direct product of two or more of these.

    Raises:
      ValueError: if there is no such group, or if it does not have 2 … `LARGEST` elements.
    """
    factors = [_simple(part) for part in name.split("x")]
    if not 2 <= (size := math.prod(len(factor.names) for factor in factors)) <= LARGEST:
        raise ValueError(f"{name!r} is of order {size}; a group has 2 … {LARGEST} elements here")
    return reduce(_pair, factors)


def from_table(rows: Sequence[Sequence[int]]) -> Group:
    """Returns the group of a multiplication table. Elements are named by their ids.

    Raises:
      ValueError: if the table is not that of a group of 2 … `LARGEST` elements. The message says why.
    """
    size = len(rows)
    if not 2 <= size <= LARGEST:
        raise ValueError(f"number of rows: {size}; a group has 2 … {LARGEST} elements here")
    for n, row in enumerate(rows):
        if len(row) != size:
            raise ValueError(f"row {n} has {len(row)} entries, but there are {size} rows")
        for entry in row:
            if type(entry) is not int or not 0 <= entry < size:
                raise ValueError(f"row {n} has the entry {entry!r}, which is not an element 0 … {size - 1}")
    table = np.array(rows, np.int32)
    check(table)
    return Group(tuple(map(str, range(size))), table)


def check(table: np.ndarray) -> None:
    """Checks that a closed table [n n] is that of a group: it has an identity and inverses, and is associative.

    Raises:
      ValueError: if it is not. The message names the elements for which it fails.
    """
    every = np.arange(len(table))
    turned = table.swapaxes(0, 1)
    neutral = np.flatnonzero((table == every).all(axis=1) & (turned == every).all(axis=1))
    if not neutral.size:
        raise ValueError("no element is an identity")
    inverse = ((table == neutral[0]) & (turned == neutral[0])).any(axis=1)
    if not inverse.all():
        raise ValueError(f"element {np.argmin(inverse)} has no inverse")
    for a in every:
        left, right = table[table[a]], table[a][table]  # (a·b)·c and a·(b·c)
        if (wrong := np.argwhere(left != right)).size:
            b, c = wrong[0]
            raise ValueError(f"it is not associative: ({a}·{b})·{c} = {left[b, c]}, but {a}·({b}·{c}) = {right[b, c]}")


def read(path: str) -> Group:
    """Returns the group of a table in a file: a line for each element, with ids separated by spaces or commas.

    Raises:
      DataError: if the file cannot be read, or if it is not the table of a group.
    """
    lines = text(contents(user_path(path), path.endswith(".gz")), path).splitlines()
    rows: list[list[int]] = []
    for number, line in enumerate(lines, start=1):
        entries = line.replace(",", " ").split()
        for entry in entries:
            if not re.fullmatch(r"[0-9]{1,9}", entry):
                raise DataError(f"{path}, line {number}: {entry!r} is not the number of an element")
        if entries:
            rows.append([int(entry) for entry in entries])
    try:
        return from_table(rows)
    except ValueError as error:
        raise DataError(f"{path} is not the multiplication table of a group: {error}") from error


def draw(
    random: np.random.Generator, size: int, length: int, group: Group, moved: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draws words, whose elements are independent and uniform.

    Args:
      random: the generator.
      size: number of words N.
      length: number of elements T of a word.
      group: the group.
      moved: the largest number of points that an element of a word moves; 0 means any. It is for permutations only.

    Returns:
      The ids of the elements, and those of the products of all prefixes, both [N T] int32.
    """
    letters = np.arange(len(group.table), dtype=np.int32)
    if moved and group.moved is not None:
        letters = letters[group.moved <= moved]
    words = letters[random.integers(len(letters), size=(size, length))]
    products = words.copy()
    for t in range(1, length):
        products[:, t] = group.table[products[:, t - 1], words[:, t]]
    return words, products


def _simple(name: str) -> Group:
    """Returns a group that is not written as a direct product."""
    if name == "q8":
        return _quaternions()
    found = re.fullmatch(r"([zsad])([1-9][0-9]{0,3})", name)
    if found is None:
        raise ValueError(f"{name!r} is not a known group; known: {NAMES}")
    make, most = _KINDS[found[1]]
    if (n := int(found[2])) > most:
        raise ValueError(f"{name!r} is too large; N of {found[1]}N is at most {most}")
    return make(n)


def _cyclic(n: int) -> Group:
    every = np.arange(n, dtype=np.int32)
    return Group(tuple(map(str, range(n))), (every[:, None] + every) % n)


def _symmetric(n: int) -> Group:
    return _permutations(np.array(list(permutations(range(n)))))


def _alternating(n: int) -> Group:
    points = np.array(list(permutations(range(n))))
    first, second = np.triu_indices(n, 1)
    return _permutations(points[(points[:, first] > points[:, second]).sum(axis=1) % 2 == 0])


def _permutations(points: np.ndarray) -> Group:
    """Returns the group of permutations [n P], where element e sends point i to `points[e, i]`."""
    composed = points[:, points].swapaxes(0, 1)  # [a b i]: a sends i to points[a, i], and b sends that on
    weights = points.shape[1] ** np.arange(points.shape[1])[::-1]
    table = np.searchsorted(points @ weights, composed @ weights).astype(np.int32)
    names = tuple("".join(map(str, row)) for row in points.tolist())
    return Group(names, table, (points != np.arange(points.shape[1])).sum(axis=1))


def _dihedral(n: int) -> Group:
    """Returns the symmetries of a regular polygon: r^a is element a, and r^a·s is element n + a, with s·r = r⁻¹·s."""
    turned, flipped = (x.ravel() for x in np.meshgrid(np.arange(n), np.arange(2), indexing="xy"))
    turns = (turned[:, None] + np.where(flipped, -1, 1)[:, None] * turned) % n
    table = (turns + n * (flipped[:, None] ^ flipped)).astype(np.int32)
    return Group(tuple(f"r{a}{'s' * f}" for a, f in zip(turned.tolist(), flipped.tolist(), strict=True)), table)


def _quaternions() -> Group:
    """Returns ±1, ±i, ±j, ±k. Element u + 4·s is (−1)^s times unit u."""
    unit = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
    sign = np.array([[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]])  # i·j = k, j·k = i, k·i = j
    every = np.arange(8)
    u, s = every % 4, every // 4
    table = unit[u[:, None], u] + 4 * (s[:, None] ^ s ^ sign[u[:, None], u])
    return Group(("1", "i", "j", "k", "-1", "-i", "-j", "-k"), table.astype(np.int32))


def _pair(a: Group, b: Group) -> Group:
    """Returns the direct product: element (x, y) is x·|b| + y."""
    m, n = len(a.names), len(b.names)
    table = (a.table[:, None, :, None] * n + b.table[None, :, None, :]).reshape(m * n, m * n)
    return Group(tuple(f"{x}|{y}" for x, y in product(a.names, b.names)), table.astype(np.int32))


_KINDS = {"z": (_cyclic, LARGEST), "s": (_symmetric, 6), "a": (_alternating, 6), "d": (_dihedral, LARGEST // 2)}
