import jax
import jax.numpy as jnp

from attnlab.analysis import cost


def test_products_loops_and_elements_are_counted():
    a, b = jnp.ones((4, 8)), jnp.ones((8, 6))
    assert cost.flops(lambda a, b: a @ b, a, b) == 2 * 4 * 8 * 6
    assert cost.flops(jnp.exp, a) == 32
    assert cost.flops(jnp.sum, a) == 32
    scattered = lambda a, n: jnp.zeros((3, 8)).at[n].add(a)
    assert cost.flops(scattered, a, jnp.zeros(4, int)) == 32
    assert cost.flops(lambda a, n: jnp.zeros((3, 8)).at[n].set(a), a, jnp.zeros(4, int)) == 0
    assert cost.flops(lambda a: jax.lax.reduce(a, 0.0, jax.lax.mul, (1,)), a) == 32 + 1  # with what it begins with
    scan = lambda x: jax.lax.scan(lambda c, _: (c @ jnp.ones((4, 4)), None), x, length=5)[0]
    assert cost.flops(scan, jnp.ones((4, 4))) == 5 * 2 * 4**3


def test_a_batch_costs_as_many_times_its_example_and_a_gradient_about_three_times():
    w = jnp.ones((16, 16))
    one = cost.flops(lambda w, x: jnp.sum((x @ w) ** 2), w, jnp.ones((8, 16)))
    many = cost.flops(jax.vmap(lambda w, x: jnp.sum((x @ w) ** 2), (None, 0)), w, jnp.ones((5, 8, 16)))
    assert many == 5 * one
    both = cost.flops(jax.grad(lambda w, x: jnp.sum((x @ w) ** 2), (0, 1)), w, jnp.ones((8, 16)))
    assert 2.5 <= both / one <= 3.5


def test_the_count_agrees_with_the_compilers_where_there_is_no_loop():
    f = lambda a, b: jnp.tanh(a @ b) @ b.T
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((64, 32), (32, 48))]
    counted = jax.jit(f).lower(*shapes).compile().cost_analysis()["flops"]
    assert 0.9 <= cost.flops(f, *shapes) / counted <= 1.1


def test_sizes_and_parameters():
    tree = {"a": jnp.ones((2, 3)), "b": jnp.ones(4, jnp.bfloat16), "key": jax.random.key(0)}
    assert cost.parameters({"a": tree["a"], "b": tree["b"]}) == 10
    assert cost.size(tree) == 24 + 8
