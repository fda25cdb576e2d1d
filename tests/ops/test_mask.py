import itertools
import subprocess
import sys
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.ops.mask import (
    Causal,
    Dilated,
    Edges,
    Full,
    Global,
    KeyPadding,
    Keys,
    Mask,
    Prefix,
    QueryPadding,
    Segments,
    Window,
)
from attnlab.ops.tree import pytree, static

I, J = np.arange(2, 8), np.arange(8)
ADJACENCY = jax.random.bernoulli(jax.random.key(0), 0.4, (8, 8))
IDS = jnp.array([0, 0, 1, 1, 1, 2, 2, 2])
KEEP = jnp.array([1, 0, 1, 1, 0, 1, 1, 0], bool)

# Each mask with its rule for one pair.
MASKS = {
    "full": (Full(), lambda i, j: True),
    "causal": (Causal(), lambda i, j: j <= i),
    "window": (Window(3, 2), lambda i, j: i - 2 <= j <= i + 1),
    "itself": (Window(1, 1), lambda i, j: i == j),
    "keys": (Keys(5), lambda i, j: j < 5),
    "kept": (KeyPadding(KEEP), lambda i, j: KEEP[j]),
    "not kept, in numbers": (~KeyPadding(2 * KEEP.astype(int)), lambda i, j: not KEEP[j]),
    "no rows, in numbers": (~QueryPadding(2 * KEEP.astype(int)), lambda i, j: not KEEP[i]),
    "rows": (QueryPadding(KEEP), lambda i, j: KEEP[i]),
    "padding": (KeyPadding(KEEP) & QueryPadding(KEEP), lambda i, j: KEEP[i] and KEEP[j]),
    "segments": (Segments(IDS, IDS), lambda i, j: IDS[i] == IDS[j]),
    "edges": (Edges(ADJACENCY), lambda i, j: ADJACENCY[i, j]),
    "prefix": (Causal() | Prefix(4), lambda i, j: j <= i or j < 4),
    "dilated": (Dilated(3), lambda i, j: (i - j) % 3 == 0),
    "global": (Global(2), lambda i, j: i < 2 or j < 2),
    "and": (Causal() & Window(4, 4) & Keys(6), lambda i, j: j <= i and i - 4 < j < i + 4 and j < 6),
    "not": (~(Causal() & Dilated(2)), lambda i, j: not (j <= i and (i - j) % 2 == 0)),
}
each = pytest.mark.parametrize("name", MASKS)


@each
def test_masks_equal_their_definitions(name):
    mask, allowed = MASKS[name]
    expected = [[bool(allowed(i, j)) for j in J] for i in I]
    np.testing.assert_array_equal(mask(jnp.asarray(I), jnp.asarray(J)), expected)


@each
@pytest.mark.parametrize("place", [np.asarray, jnp.asarray])
def test_reachable_are_rows_and_columns_with_an_allowed_pair(name, place):
    mask, _ = MASKS[name]
    array = np.asarray(mask(I, J))
    for seen in (mask.reachable(place(I), place(J)), jax.jit(lambda i, j: mask.reachable(i, j))(I, J)):
        np.testing.assert_array_equal(seen[0], array.any(axis=1))
        np.testing.assert_array_equal(seen[1], array.any(axis=0))


@pytest.mark.parametrize("mask", [Causal() & Window(3, 1), Dilated(700) & ~Causal(), Window(2, 2) & Keys(500)])
def test_reachable_is_computed_by_blocks_for_many_pairs(mask):
    i, j = np.arange(40, 1240), np.arange(1300)
    pairs = np.asarray(mask(i, j))
    for seen in (mask.reachable(i, j), mask.reachable(jnp.asarray(i), jnp.asarray(j))):
        np.testing.assert_array_equal(seen[0], pairs.any(axis=1))
        np.testing.assert_array_equal(seen[1], pairs.any(axis=0))


@each
def test_block_status_is_correct(name):
    mask, _ = MASKS[name]
    whole = np.asarray(mask(np.arange(8), np.arange(8)))
    for i0, i1, j0, j1 in itertools.product((0, 2, 3), (4, 8), (0, 1, 5), (6, 8)):
        block = whole[i0:i1, j0:j1]
        said = mask.over(i0, i1, j0, j1)
        assert said is None or (block == said).all()


def test_empty_and_full_blocks_are_found_by_formulas():
    assert [Causal().over(4, 8, j, j + 4) for j in (0, 4, 8)] == [True, None, False]
    assert [Window(3, 2).over(4, 6, *j) for j in ((0, 2), (2, 4), (4, 6), (4, 7), (7, 9))] == [
        False,
        None,
        True,
        None,
        False,
    ]
    assert (Causal() & Window(3, 9)).over(4, 6, 0, 2) is False
    assert (Global(2) | Window(2, 2)).over(4, 8, 0, 2) is True
    assert (Global(2) | Window(2, 2)).over(8, 12, 2, 6) is False
    assert (~Causal()).over(0, 4, 4, 8) is True
    assert Dilated(8).over(0, 2, 2, 4) is False
    assert Keys(4).over(0, 9, 4, 6) is False


@each
def test_factors_multiply_to_the_mask(name):
    mask, _ = MASKS[name]
    factors = mask.factors(I, J)
    assert (factors is not None) == (name in ("full", "keys", "kept", "not kept, in numbers", "rows", "padding"))
    if factors is not None:
        np.testing.assert_array_equal(np.outer(*factors), mask(I, J))


@each
def test_a_mask_is_a_pytree_and_jits(name):
    mask, _ = MASKS[name]
    i, j = jnp.asarray(I), jnp.asarray(J)
    np.testing.assert_array_equal(jax.jit(lambda mask: mask(i, j))(mask), mask(i, j))


def test_masks_that_depend_on_keys_alone_declare_it():
    assert (Keys(3) | Prefix(2)).keys_only
    assert (~Keys(3)).keys_only
    assert not (Keys(3) & Causal()).keys_only
    assert (Segments(IDS, IDS) & Causal()).indexed
    assert not (Causal() & Keys(3)).indexed


def test_a_count_may_be_traced():
    counts = jnp.array([0, 3, 8])
    masks = jax.vmap(lambda n: Keys(n)(jnp.arange(2), jnp.arange(8)))(counts)
    np.testing.assert_array_equal(masks.sum(axis=-1), [[0, 0], [3, 3], [8, 8]])


@pytest.mark.parametrize("make", [lambda: Window(0, 1), lambda: Window(1, 0), lambda: Dilated(0)])
def test_sizes_below_one_are_refused_by_name(make):
    with pytest.raises(ValueError, match="at least 1"):
        make()


def test_indices_outside_an_array_are_neither_clamped_nor_counted_from_the_end():
    i, j = jnp.array([0, 2, -1, 9]), jnp.array([0, -1, 2, 9])
    ids = jnp.array([4, 4, 4])
    inside = np.array([[1, 0, 1, 0], [1, 0, 1, 0], [0] * 4, [0] * 4], bool)
    np.testing.assert_array_equal(Edges(jnp.ones((3, 3), bool))(i, j), inside)
    np.testing.assert_array_equal(Segments(ids, ids)(i, j), inside)
    np.testing.assert_array_equal(KeyPadding(jnp.ones(3, bool))(i, j), np.tile(inside[0], (4, 1)))


def test_a_numeric_adjacency_is_negated_as_boolean():
    i = jnp.arange(3)
    np.testing.assert_array_equal((~Edges(jnp.eye(3, dtype=jnp.int32)))(i, i), ~np.eye(3, dtype=bool))


def test_lists_are_refused_by_name():
    # A separate process, because in this one the annotations are checked at run time.
    code = """
from attnlab.ops.mask import *
made = (lambda: KeyPadding([True]), lambda: QueryPadding([True]), lambda: Segments([0], [0]), lambda: Edges([[True]]))
for make in made:
    try:
        make()
    except ValueError as error:
        print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    fields = ("KeyPadding: keep", "QueryPadding: keep", "Segments: query", "Edges: adjacency")
    assert told.splitlines() == [f"{field} must be an array, got list; use numpy.array" for field in fields]


def test_user_masks_may_use_jax():
    """Positions are known while tracing. A mask that uses jax functions evaluates to concrete values there, too."""

    @pytree
    @dataclass(frozen=True)
    class Near(Mask):
        width: int = static()

        def __call__(self, i, j):
            return jnp.abs(jnp.asarray(i)[:, None] - jnp.asarray(j)[None, :]) < self.width

    i = np.arange(5, dtype=np.int32)
    for mask in (Near(2), Near(2) & Causal(), ~Near(2)):
        said = jax.jit(lambda mask=mask: mask.reachable(i, i))()
        pairs = np.asarray(mask(i, i))
        np.testing.assert_array_equal(said[0], pairs.any(axis=1))
        np.testing.assert_array_equal(said[1], pairs.any(axis=0))


def test_only_masks_compose():
    with pytest.raises(TypeError):
        Causal() & None
