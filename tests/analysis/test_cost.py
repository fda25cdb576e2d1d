import jax
import jax.numpy as jnp
import pytest

from attnlab.analysis import cost
from attnlab.bench.calls import by_heads, inputs
from attnlab.mechanisms import MECHANISMS
from attnlab.ops.trip_counts import annotate_trip_counts


def test_products_loops_and_elements_are_counted():
    a, b = jnp.ones((4, 8)), jnp.ones((8, 6))
    assert cost.flops(lambda a, b: a @ b, a, b) == 2 * 4 * 8 * 6
    assert cost.flops(jnp.exp, a) == 32
    assert cost.flops(jnp.sum, a) == 32
    scattered = lambda a, n: jnp.zeros((3, 8)).at[n].add(a)
    assert cost.flops(scattered, a, jnp.zeros(4, int)) == 32
    assert cost.flops(lambda a, n: jnp.zeros((3, 8)).at[n].set(a), a, jnp.zeros(4, int)) == 0
    assert cost.flops(lambda a: jax.lax.reduce(a, 0.0, jax.lax.mul, (1,)), a) == 32 + 1  # one for the initial value
    scan = lambda x: jax.lax.scan(lambda c, _: (c @ jnp.ones((4, 4)), None), x, length=5)[0]
    assert cost.flops(scan, jnp.ones((4, 4))) == 5 * 2 * 4**3


def test_a_batch_costs_as_many_times_its_example_and_a_gradient_about_three_times():
    w = jnp.ones((16, 16))
    one = cost.flops(lambda w, x: jnp.sum((x @ w) ** 2), w, jnp.ones((8, 16)))
    many = cost.flops(jax.vmap(lambda w, x: jnp.sum((x @ w) ** 2), (None, 0)), w, jnp.ones((5, 8, 16)))
    assert many == 5 * one
    both = cost.flops(jax.grad(lambda w, x: jnp.sum((x @ w) ** 2), (0, 1)), w, jnp.ones((8, 16)))
    assert 2.5 <= both / one <= 3.5


def test_the_count_equals_that_of_the_compiler_without_loops():
    f = lambda a, b: jnp.tanh(a @ b) @ b.T
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((64, 32), (32, 48))]
    counted = jax.jit(f).lower(*shapes).compile().cost_analysis()["flops"]
    assert 0.9 <= cost.flops(f, *shapes) / counted <= 1.1


def test_sizes_and_parameters():
    tree = {"a": jnp.ones((2, 3)), "b": jnp.ones(4, jnp.bfloat16), "key": jax.random.key(0)}
    assert cost.parameters({"a": tree["a"], "b": tree["b"]}) == 10
    assert cost.size(tree) == 24 + 8


def test_declared_trip_counts_are_used():
    x, n = jnp.ones(12), jnp.int32(3)
    loop = lambda x, n: jax.lax.fori_loop(0, n, lambda _, x: x * 2, x)
    assert cost.flops(loop, x, n) == 12  # the trip count is unknown, so one iteration is counted

    def said(x, n):
        inner = lambda _, x: loop(x + 1, n)  # the trip count of a loop does not apply to loops inside it
        with annotate_trip_counts([5], 2):
            return jax.lax.fori_loop(0, n, inner, x)

    assert cost.flops(said, x, n) == 5 * (12 + 12) // 2
    assert cost.flops(jax.jit(jax.vmap(said, (0, None))), jnp.ones((4, 12)), n) == 4 * 5 * (12 + 12) // 2

    branches = [lambda x: x * 2, lambda x: (x + 1) * 2, lambda x: x]
    assert cost.flops(lambda x, n: jax.lax.switch(n, branches, x), x, n) == 24

    def taken(x, n):
        with annotate_trip_counts([1, 2, 1], 4):
            return jax.lax.switch(n, branches, x)

    assert cost.flops(taken, x, n) == (12 + 2 * 24) // 4


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_counted_flops_grow_as_declared(name):
    """Covers unrolled panels, loops over blocks whose trip count a trace does not show, and unblocked computation.

    A block is computed in full if any of its pairs is allowed, which computes up to about 2.7 times the allowed pairs.
    """
    for T in (512, 8192):
        mechanism = MECHANISMS[name].with_length(T)
        for mask, block in (("full", None), ("causal", getattr(mechanism, "block", None))):
            try:
                counted = cost.flops(by_heads(mechanism, mask), *inputs(mechanism, T, 1, 64))
            except NotImplementedError:
                continue
            assert 0.5 <= counted / mechanism.cost(T, T, 64, 64, block).flops <= 2.7
