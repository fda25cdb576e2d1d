from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.models import AssociativeMemory
from attnlab.models.associative_memory import fingerprint, rotation
from attnlab.ops.feature import Dpfp, Favor
from attnlab.tasks.synthetic.associations import AssociationShape

SHAPE = AssociationShape(5, 5, 5)
KEYS, VALUES = jnp.array([3, 0, 4, 1, 2], jnp.int32), jnp.array([1, 1, 0, 4, 2], jnp.int32)


def network(config, seed=0):
    return config.create(jax.random.key(seed), SHAPE)


def ask(config, queries, keys=KEYS, values=VALUES, seed=0):
    call = jax.jit(lambda net, *given: net(*given))
    return np.asarray(call(network(config, seed), keys, values, jnp.asarray(queries, jnp.int32)), np.float64)


def test_it_equals_the_published_equation():
    """Computes k = W_k [onehot v ; e], q = W_q e, ŷ = Σ φ(q)·φ(k_t) onehot v_t / Σ φ(q)·φ(k_t)."""
    config = AssociativeMemory(width=4, mechanism=Linear())
    net = network(config)
    embed, w_value, w_key, w_q = (np.asarray(x[...], np.float64) for x in (net.embed, net.k.value, net.k.key, net.q))
    assert embed.shape == (5, 11)  # int(2.2 · 5)
    feature = lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    keys = feature(np.eye(5)[VALUES] @ w_value + embed[np.asarray(KEYS)] @ w_key)
    for query in range(5):
        weights = keys @ feature(embed[query] @ w_q)
        expected = (weights / weights.sum()) @ np.eye(5)[VALUES]
        np.testing.assert_allclose(ask(config, [query])[0], expected, atol=1e-6)


# The model does not support inputs per query.
DECODING = [name for name, mechanism in MECHANISMS.items() if mechanism.traits.decodes and not mechanism.queries]


@pytest.mark.parametrize("name", DECODING)
def test_every_decoding_mechanism_answers_one_or_many_queries(name):
    config = AssociativeMemory(width=4, mechanism=MECHANISMS[name])
    together = ask(config, [2, 0, 3])
    assert together.shape == (3, 5)
    assert np.isfinite(together).all()
    for n, query in enumerate([2, 0, 3]):
        np.testing.assert_allclose(ask(config, [query])[0], together[n], atol=1e-5)


def test_softmax_can_recall_exactly():
    """If each query matches its own key only, the output is the value."""
    config = AssociativeMemory(width=5)
    net = network(config)
    eye = jnp.eye(5, 11)
    net.embed[...], net.q[...], net.k.key[...] = eye, 300 * jnp.eye(11, 5), jnp.eye(11, 5)
    net.k.value[...] = jnp.zeros_like(net.k.value[...])
    np.testing.assert_allclose(net(KEYS, VALUES, KEYS), np.eye(5)[VALUES], atol=1e-6)


def test_the_order_of_pairs_does_not_matter_to_a_sum():
    config = AssociativeMemory(width=4, mechanism=Linear(feature=Dpfp()))
    order = jnp.array([4, 2, 0, 1, 3])
    np.testing.assert_allclose(ask(config, [1], KEYS[order], VALUES[order]), ask(config, [1]), atol=1e-6)


def test_a_rotation_is_orthogonal_and_depends_on_the_sequence_alone():
    one, same = (rotation(fingerprint(KEYS, VALUES), 6) for _ in range(2))
    np.testing.assert_array_equal(one, same)
    np.testing.assert_allclose(one @ one.T, np.eye(6), atol=1e-6)
    other = rotation(fingerprint(KEYS[::-1], VALUES), 6)
    assert np.abs(one - other).max() > 0.1
    # Rotations are uniform: entries have mean 0 and variance 1/K.
    many = jax.vmap(lambda n: rotation(jax.random.key(n), 6))(jnp.arange(2000, dtype=jnp.uint32))
    np.testing.assert_allclose(many.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose((many**2).mean(axis=0), 1 / 6, atol=0.03)


def test_rotation_changes_random_features_but_not_functions_of_products():
    for mechanism, same in ((Softmax(), True), (Linear(feature=Favor(m=4)), False)):
        config = AssociativeMemory(width=4, mechanism=mechanism)
        difference = np.abs(ask(config, [1]) - ask(replace(config, redrawn=True), [1])).max()
        assert bool(difference < 1e-5) is same


def test_its_memory_is_one_state_of_the_mechanism():
    state = network(AssociativeMemory(width=4, mechanism=Linear(feature=Dpfp(nu=2)))).start(5)
    # [M, V + 1]: 2·4·2 features, 5 values and the sum.
    assert {x.shape for x in jax.tree.leaves(state.memory)} == {(16, 6)}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"width": 0}, "model.width=0 must be at least 1"),
        ({"embedding": 0.0}, "model.embedding=0.0 must be a finite number above 0"),
        ({"embedding": 1e300}, r"model.embedding=1e\+300 must be a finite number above 0, and at most 1048576"),
        ({"width": 2**21}, "model.width=2097152 must be at least 1, and at most 1048576"),
        ({"mechanism": MECHANISMS["linformer"]}, "has no causal form"),
    ],
)
def test_invalid_values_name_the_field(fields, words):
    with pytest.raises(ValueError, match=words):
        AssociativeMemory(**fields)
