from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from attnlab.mechanisms import Softmax, causal
from attnlab.ops.blockwise import LoopSchedule, PositionedMask, attend, equal_blocks, merge_parts
from attnlab.ops.blockwise.schedule import PanelSchedule, plan_blocks
from attnlab.ops.blockwise.sweep import exponential
from attnlab.ops.learned_score import Scores
from attnlab.ops.mask import Causal, Edges, Full, Global, Keys, RandomBlocks, Segments, Window
from attnlab.ops.score import SCORES, scaled_dot
from attnlab.ops.tree import pytree

pytestmark = pytest.mark.usefixtures("x64")
K, V = 4, 6


@pytree
@dataclass(frozen=True)
class Near:
    """A learned bias by clipped distance that also depends on the query."""

    table: Array
    turn: Array

    def __call__(self, q, i, j):
        distance = jnp.clip(jnp.asarray(i)[:, None] - jnp.asarray(j)[None, :], -3, 3) + 3
        return (q @ self.turn)[:, None] * self.table[distance]


def draw(T, S, seed=0):
    rng = np.random.default_rng(seed)
    return [jnp.asarray(rng.standard_normal(shape)) for shape in ((T, K), (S, K), (S, V), (T, V))]


def both(T, S, mask, block, score=scaled_dot, bias=None, **given):
    """Returns value and gradients, computed densely and in blocks."""
    q, k, v, target = draw(T, S)
    dense = Softmax(score=score)
    learned = {n: x.astype(q.dtype) for n, x in dense.initial(jax.random.key(1), K, V).items()}

    def value(mechanism):
        def total(q, k, v, learned, bias):
            return jnp.sum(mechanism.attend(q, k, v, mask, bias=bias, **given, **learned) * target)

        # The integers of the bias have no gradient.
        return jax.value_and_grad(total, (0, 1, 2, 3, 4))

    run = lambda *x: (value(dense)(*x), value(Softmax(score=score, block=block))(*x))
    return jax.jit(run)(q, k, v, learned, bias)


def same(pair, tolerance=1e-12):
    for one, other in zip(*map(jax.tree.leaves, pair), strict=True):
        np.testing.assert_allclose(other, one, atol=tolerance)


ids = jnp.arange(17) // 5
MASKS = {
    "full": Full(),
    "causal": Causal(),
    "window": Window(3, 2),
    "keys": Keys(3),
    "hole": Causal() & ~Window(2, 1),
    "segments": Segments(ids, ids),
    "edges": Edges(jnp.asarray(np.random.default_rng(0).random((17, 17)) < 0.3)),
}


@pytest.mark.parametrize(
    ("mask", "T", "S", "block"),
    [*((mask, 13, 13, 4) for mask in MASKS), ("causal", 5, 17, 4), ("hole", 17, 5, 3), ("window", 7, 7, 1)],
)
def test_blockwise_equals_all_pairs(mask, T, S, block):
    places = {"i": jnp.arange(T, dtype=jnp.int32)} if MASKS[mask].indexed else {}
    same(both(T, S, MASKS[mask], block, **places))


@pytest.mark.parametrize("score", SCORES)
def test_every_score_and_its_parameters(score):
    same(both(7, 9, Causal(), 4, SCORES[score]))


def test_a_learned_bias_has_its_gradients():
    same(both(9, 9, Causal(), 4, bias=Near(jnp.linspace(-1, 1, 7), jnp.ones(K))))


def test_arrays_of_a_bias_are_leaves_and_refused_in_a_closure():
    q, k, v = (np.random.default_rng(n).standard_normal((5, 4)) for n in range(3))
    slope = lambda s, q, i, j: -s * jnp.abs(i[:, None] - j[None]).astype(q.dtype)

    def total(block, s):
        return Softmax(block=block).attend(q, k, v, Causal(), bias=jax.tree_util.Partial(slope, s)).sum()

    for transform, s in ((jax.grad, 0.5), (jax.jit, 0.5), (jax.vmap, np.array([0.5, 1.0]))):
        found, wanted = (jax.jit(transform(partial(total, block)))(s) for block in (2, None))
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    hidden = lambda s: Softmax(block=2).attend(q, k, v, bias=lambda q, i, j: slope(s, q, i, j)).sum()
    with pytest.raises(NotImplementedError, match=r"<lambda> holds a traced array outside of a pytree"):
        jax.grad(hidden)(0.5)


def test_traced_arrays_in_a_bias_closure_are_always_refused():
    q, k, v = (np.random.default_rng(n).standard_normal((5, 4)) for n in range(3))
    slope = lambda s, q, i, j: -s * jnp.abs(i[:, None] - j[None]).astype(q.dtype)

    class Slope:
        def __init__(self, s):
            self.s = s

        def __call__(self, q, i, j):
            return slope(self.s, q, i, j)

    makers = {
        "partial": [lambda s: partial(slope, s), lambda s: partial(partial(slope), s), lambda s: partial(Slope(s))],
        "Slope": [Slope],
        "__call__": [lambda s: Slope(s).__call__],
    }
    for name, made in ((name, made) for name, several in makers.items() for made in several):
        run = lambda s, made=made: Softmax(block=2).attend(q, k, v, bias=made(s)).sum()
        with pytest.raises(NotImplementedError, match=f"{name} holds a traced array outside of a pytree"):
            jax.grad(run)(0.5)
        # A known value is accepted.
        np.testing.assert_allclose(run(0.5), Softmax().attend(q, k, v, bias=made(0.5)).sum(), atol=1e-12)


def test_traced_positions_in_any_order():
    order = jnp.array([5, 0, 3, 8, 1, 7, 2, 6, 4], jnp.int32)
    same(both(9, 9, Causal(), 4, i=order[::-1], j=order))


def test_heads_and_examples_in_groups_give_the_same(monkeypatch):
    import sys

    module = sys.modules["attnlab.ops.blockwise.attend"]
    q, k, v, target = (jnp.stack([jnp.stack([x * n for n in (1, 2, 3, 4)])] * 2) for x in draw(7, 7))
    keep = jnp.array([5, 7], jnp.int32)

    def total(q, v):
        head = lambda q, k, v, keep: Softmax(block=4).attend(q, k, v, Causal() & Keys(keep))
        heads = jax.vmap(head, (0, 0, 0, None))
        return jnp.sum(jax.vmap(heads)(q, k, v, keep) * target)

    found = []
    for room in (2**20, 4 * 8 * 2, 1):
        monkeypatch.setattr(module, "PANEL", room)
        found.append(jax.jit(lambda q, v: jax.value_and_grad(total, (0, 1))(q, v))(q, v))
    same(found[:2])
    same(found[1:])


@pytest.mark.parametrize("mask", [Full(), Causal(), Window(3, 3)])
def test_no_examples_have_no_output_and_no_gradients(mask):
    q = jnp.zeros((0, 2, 8, 4))
    run = jax.vmap(jax.vmap(lambda q: Softmax(block=4).attend(q, q, q, mask)))
    y, pull = jax.vjp(run, q)
    assert y.shape == pull(y)[0].shape == (0, 2, 8, 4)


def test_a_fully_masked_row_is_zero_with_zero_gradient_and_affects_no_sum():
    q, k, v, _ = draw(4, 6)
    place = lambda n: np.arange(n, dtype=np.int32)

    def run(q, k, v):
        masks = [PositionedMask(Window(1, 1) & ~Keys(2), place(4), place(6))]
        parts = attend(q, k, v, Scores(scaled_dot, {}), masks, i=place(4), j=place(6), block=2)
        return merge_parts([parts, parts]), parts[1]

    @jax.jit
    def passes(q, k, v):
        (y, norm), back = jax.vjp(run, q, k, v)
        return y, norm, back((jnp.ones_like(y), jnp.ones_like(norm)))

    y, norm, changes = passes(q, k, v)
    np.testing.assert_array_equal(norm[:2], [-np.inf] * 2)
    assert not np.any(y[:2])
    np.testing.assert_allclose(y[2:], v[2:4])
    assert all(np.isfinite(x).all() for x in changes)
    assert not np.any(changes[0][:2])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_dtypes_are_kept_and_large_scores_stay_finite(dtype):
    q, k, v, _ = (x.astype(dtype) for x in draw(9, 9))
    run = jax.jit(lambda q, k, v: Softmax(block=4).attend(q, k, v, Causal()))
    exact = run(*(x.astype(jnp.float64) for x in (q, k, v)))
    y, back = jax.vjp(run, q, k, v)
    assert y.dtype == dtype
    limit = {"float32": 5e-6, "bfloat16": 1.5e-2, "float16": 2e-3}[dtype]
    assert np.abs(y.astype(jnp.float64) - exact).max() <= limit * np.abs(exact).max()
    assert [x.dtype for x in back(y)] == [dtype] * 3
    big, back = jax.vjp(run, q * 100, k * 100, v)
    assert all(np.isfinite(x.astype(jnp.float32)).all() for x in (big, *back(big)))


def test_scores_with_and_without_maximum_agree_at_the_bound():
    q, k, v, _ = draw(8, 8)
    for size in (26.0, 28.0):
        scaled = q * (size * 2 / jnp.sqrt((q * q).sum(1).max() * (k * k).sum(1).max()))
        np.testing.assert_allclose(Softmax(block=4).attend(scaled, k, v), Softmax().attend(scaled, k, v), atol=1e-12)


def test_large_values_stay_finite_without_maximum():
    keys, score = 16, 26.9
    q, v = np.full((keys, 1), score**0.5, np.float32), np.full((keys, 1), 3.7e25, np.float32)  # 6e26 / 16
    np.testing.assert_allclose(Softmax(block=8).attend(q, q, v), v, rtol=1e-5)


def test_the_exponential_is_exact_to_single_precision():
    x = np.linspace(-86, 27, 10001)[None].astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    error = np.abs(np.asarray(jax.jit(exponential)(jnp.asarray(x)), np.float64) / exact - 1)
    # The argument is converted to powers of two in single precision.
    assert (error <= 3e-7 + 1e-7 * np.abs(x)).all()
    assert float(exponential(jnp.float32(-np.inf)[None, None])[0, 0]) <= 1e-38


def walk(jaxpr):
    """Yields every equation of a program and of the programs inside it."""
    for equation in jaxpr.eqns:
        yield equation
        for value in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from walk(inner)


def program(mechanism, T, dtype, mask=None):
    run = lambda q, k, v: causal(mechanism, q, k, v) if mask is None else mechanism.attend(q, k, v, mask)
    x = jax.ShapeDtypeStruct((T, 64), dtype)
    return jax.make_jaxpr(lambda q, k, v: jax.vjp(run, q, k, v)[1](q))(x, x, x)


@pytest.mark.parametrize("mask", [None, Full(), Window(64, 64) | Global(2)], ids=["causal", "full", "longformer"])
def test_no_array_of_all_pairs_is_created(mask):
    T = 4096
    sizes = [
        out.aval.size for eqn in walk(program(Softmax(block=256), T, jnp.float32, mask).jaxpr) for out in eqn.outvars
    ]
    assert max(sizes) <= 256 * T


def work(jaxpr):
    """Returns the multiplications of all products. Each branch of a switch is taken by one block of queries."""
    total = 0
    for eqn in walk(jaxpr):
        if eqn.primitive.name == "dot_general":
            (contracted, _), _ = eqn.params["dimension_numbers"]
            total += eqn.outvars[0].aval.size * eqn.invars[0].aval.shape[contracted[0]]
    return total


def test_blocks_above_the_diagonal_are_never_computed():
    T, block = 2048, 256
    A = T // block
    # Five products in the backward pass and two in the forward pass. In half precision the forward pass has one form
    # only.
    pairs = block * block * A * (A + 1) // 2
    assert work(program(Softmax(block=block), T, jnp.float16).jaxpr) == 7 * 64 * pairs


def test_masks_are_evaluated_only_in_partial_blocks():
    place = np.arange(64, dtype=np.int32)
    schedule = plan_blocks([PositionedMask(Causal(), place, place)], 64, 64, 8, 8)
    assert isinstance(schedule, PanelSchedule)
    assert schedule.kinds[0] == ((8, True),)
    assert schedule.kinds[3] == ((24, False), (8, True))
    window = plan_blocks([PositionedMask(Window(8, 1), place, place)], 64, 64, 8, 8)
    assert window.kinds == (((8, True),), ((16, True),))
    assert window.kind_of_block.tolist() == [0] + [1] * 7
    full = plan_blocks([PositionedMask(Full(), place, place)], 64, 60, 8, 8)
    assert full.kinds == (((56, False), (8, True)),)


def test_too_many_kinds_of_panels_become_loops_and_give_the_same(monkeypatch):
    monkeypatch.setattr(routing_module(), "MOST", 1)
    place = np.arange(13, dtype=np.int32)
    schedule = plan_blocks([PositionedMask(Causal(), place, place)], 13, 13, 4, 4)
    assert isinstance(schedule, LoopSchedule)
    assert schedule.unmasked.counts.tolist() == [0, 1, 2, 3]
    assert schedule.masked.counts.tolist() == [1] * 4
    same(both(13, 13, Causal(), 4))


def test_rows_of_many_kinds_with_several_panels_become_loops():
    place = np.arange(64, dtype=np.int32)
    planned = lambda mask: plan_blocks([PositionedMask(mask, place, place)], 64, 64, 4, 4)
    assert isinstance(planned(RandomBlocks(2, 4, 7)), LoopSchedule)
    assert isinstance(planned(Causal()), PanelSchedule)
    assert isinstance(planned(Causal() & Window(8, 1)), PanelSchedule)


def routing_module():
    import sys

    return sys.modules["attnlab.ops.blockwise.schedule"]


@pytest.mark.parametrize(("length", "block"), [(1, 4), (4, 4), (8191, 512), (600, 512), (513, 512), (17, 4)])
def test_blocks_are_even_and_no_larger_than_requested(length, block):
    size = equal_blocks(length, block)
    assert size <= block
    assert -(-length // size) * size - length < max(8, size) + 8
