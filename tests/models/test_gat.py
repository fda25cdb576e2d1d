from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS, Linear, Sigmoid, Softmax
from attnlab.models.gat import Gat
from attnlab.models.gcn import Gcn
from attnlab.ops.score import SCORES, dot
from attnlab.tasks.base.shapes import Tokens


@dataclass(frozen=True)
class Shape:
    nodes: int = 5
    features: int = 6
    classes: int = 3


LINKS = np.array([[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2]], np.int32)
ENTRIES = np.array([[0, 0], [0, 3], [1, 1], [2, 2], [2, 5], [4, 4]], np.int32)
VALUES = np.array([0.5, 0.5, 1, 0.25, 0.75, 1], np.float32)
CONFIGS = {"gat": Gat(width=8, heads=2), "linear": Gat(width=8, heads=2, mechanism=Linear()), "gcn": Gcn(width=4)}
each = pytest.mark.parametrize("name", CONFIGS)


def made(name):
    return jax.jit(lambda: CONFIGS[name].create(jax.random.key(0), Shape()))()


def test_sizes_are_the_published_ones():
    @dataclass(frozen=True)
    class Cora:
        nodes: int = 2708
        features: int = 1433
        classes: int = 7

    count = lambda config: sum(
        x.size for x in jax.tree.leaves(jax.eval_shape(lambda: config.create(jax.random.key(0), Cora())))
    )
    # W, a and b of eight heads with eight features, then of one head with seven classes.
    assert count(Gat()) == 1433 * 64 + 8 * 16 + 64 + 64 * 7 + 14 + 7
    assert count(Gcn()) == 1433 * 16 + 16 * 7
    assert count(Gat(mechanism=Softmax(score=dot))) == count(Gat(mechanism=Linear()))


@each
def test_a_node_depends_on_nodes_two_steps_away_and_no_further(name):
    model = jax.jit(partial(made(name), LINKS, ENTRIES))
    before = model(VALUES)
    after = model(VALUES * np.array([1, 1, 1, 1, 1, 3], np.float32))
    np.testing.assert_array_equal(before[:4], after[:4])
    assert (before[4] != after[4]).any()
    after = model(VALUES * np.array([3, 1, 1, 1, 1, 1], np.float32))
    assert (before[:3] != after[:3]).any(axis=1).all()
    np.testing.assert_array_equal(before[3:], after[3:])


@pytest.mark.parametrize("name", ["gat", "gcn"])
def test_lanes_and_dropout(name):
    create = jax.jit(jax.vmap(lambda key: CONFIGS[name].create(key, Shape())))
    models = create(jax.random.split(jax.random.key(0), 2))
    value = lambda model, key: jnp.sum(model(LINKS, ENTRIES, VALUES, key) ** 2) + model.penalty()
    with jax.debug_key_reuse(False):
        keys = jax.random.split(jax.random.key(1), 2)
        found, gradient = jax.jit(jax.vmap(jax.value_and_grad(value)))(models, keys)
        one = jax.tree.map(lambda x: x[1], models)
        alone, back = jax.jit(jax.value_and_grad(value))(one, keys[1])
    np.testing.assert_allclose(found[1], alone, rtol=1e-5)
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(back), strict=True):
        np.testing.assert_allclose(a[1], b, rtol=1e-4, atol=1e-6)
    assert jax.jit(value, static_argnums=1)(one, None) != alone


def test_the_penalty_is_on_the_published_parameters():
    model, convolved = made("gat"), made("gcn")
    squares = sum(float(jnp.sum(x**2)) for x in jax.tree.leaves(model))
    np.testing.assert_allclose(model.penalty(), 0.5 * 5e-4 * squares, rtol=1e-6)
    first = float(jnp.sum(convolved.stack.layers[0].w[...] ** 2))
    np.testing.assert_allclose(convolved.penalty(), 0.5 * 5e-4 * first, rtol=1e-6)


def test_attention_weights_are_available():
    ends, layers = made("gat").weights(LINKS, ENTRIES, VALUES)
    assert [x.shape for x in layers] == [(11, 2), (11, 1)]
    for x in layers:
        for node in range(5):
            np.testing.assert_allclose(np.asarray(x)[ends.t == node].sum(axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        (Gat, {"heads": 5}, "model.heads=5 must divide model.width=64"),
        (Gat, {"dropout": 1.0}, "model.dropout=1.0 must be at least 0 and below 1"),
        (Gcn, {"layers": 0}, "model.layers=0 must be at least 1"),
        (Gcn, {"l2": -1.0}, "model.l2=-1.0 must be a finite number"),
        (Gat, {"mechanism": Sigmoid()}, "cannot be restricted to the edges of a graph; softmax and linear can$"),
        (
            Gat,
            {"mechanism": MECHANISMS["window"]},
            "mechanism=Local.* depends on positions, and the nodes of a graph",
        ),
        (Gat, {"mechanism": MECHANISMS["cosformer"]}, "Linear.*Cosformer.* depends on positions"),
        (Gat, {"mechanism": Softmax(score=SCORES["location"])}, "Softmax.*location.* depends on positions"),
    ],
)
def test_invalid_values_name_the_field(kind, fields, words):
    with pytest.raises(ValueError, match=words):
        kind(**fields)


def test_another_task_is_refused():
    with pytest.raises(ValueError, match="needs data with nodes, features, classes"):
        Gat().create(jax.random.key(0), Tokens(3, 4))
