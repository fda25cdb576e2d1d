import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import Linear, Softmax, Watched
from attnlab.modules.attention import Attention
from attnlab.modules.position import POSITIONS, Rotary
from attnlab.ops.mask import Kept

mechanisms = pytest.mark.parametrize("mechanism", [Softmax(), Linear()], ids=["softmax", "linear"])


def made(mechanism, position=None, heads=2):
    return Attention(jax.random.key(0), 8, heads, mechanism, position), jax.random.normal(jax.random.key(1), (6, 8))


def test_softmax_attention_is_the_formula_written_out():
    module, x = made(Softmax())
    q, k, v = (np.asarray(p(x)).reshape(6, 2, 4) for p in (module.q, module.k, module.v))
    heads = []
    for h in range(2):
        scores = q[:, h] @ k[:, h].T / 2.0
        share = np.exp(scores)
        heads.append(share / share.sum(axis=1, keepdims=True) @ v[:, h])
    expected = module.o(jnp.asarray(np.concatenate(heads, axis=1)))
    np.testing.assert_allclose(module.attend(x)[0], expected, atol=1e-6)


@mechanisms
def test_without_positions_and_masks_it_is_permutation_equivariant(mechanism):
    module, x = made(mechanism)
    order = jnp.array([3, 1, 5, 0, 2, 4])
    np.testing.assert_allclose(module.attend(x[order])[0], module.attend(x)[0][order], atol=1e-6)
    assert np.abs(module.whole(x[order])[0] - module.whole(x)[0][order]).max() > 1e-3


@mechanisms
def test_token_by_token_equals_the_whole(mechanism):
    module, x = made(mechanism, Rotary() if mechanism.turns else None)
    state, rows = module.start(6, 8, x.dtype), []
    for t in range(6):
        y, state = module.extend(x[t : t + 1], state, jnp.array([t]))
        rows.append(y[0])
    np.testing.assert_allclose(jnp.stack(rows), module.whole(x)[0], atol=1e-6)


@mechanisms
def test_cross_attention_reads_a_memory_of_any_length_and_ignores_its_padding(mechanism):
    module, x = made(mechanism)
    memory = jax.random.normal(jax.random.key(2), (9, 8))
    keep = jnp.arange(9) < 5
    y, _ = module.attend(x, memory, Kept(keep))
    np.testing.assert_allclose(y, module.attend(x, memory[:5])[0], atol=1e-6)


def test_rotary_positions_count_distances_only():
    module, x = made(Softmax(), Rotary())
    shifted = module.attend(x, i=jnp.arange(6) + 50, j=jnp.arange(6) + 50)[0]
    np.testing.assert_allclose(shifted, module.attend(x)[0], atol=1e-5)


@mechanisms
def test_a_watched_module_answers_the_same_and_its_maps(mechanism):
    module, x = made(mechanism)
    watched, _ = made(Watched(mechanism))
    y, seen = watched.whole(x)
    np.testing.assert_allclose(y, module.whole(x)[0], atol=1e-6)
    assert seen.shape == (2, 6, 6)
    np.testing.assert_allclose(seen.sum(axis=-1), np.ones((2, 6)), atol=1e-5)
    assert not np.triu(seen[0], 1).any()
    assert module.attend(x)[1] is None


def test_heads_that_do_not_divide_are_refused_by_name():
    with pytest.raises(ValueError, match=r"model.heads=3 must divide model.width=8"):
        made(Softmax(), heads=3)


def test_a_turn_that_a_mechanism_cannot_honour_is_refused_naming_both():
    with pytest.raises(NotImplementedError, match=r"Linear.*cannot honour Rotary"):
        made(Linear(), Rotary())


@pytest.mark.parametrize("name", POSITIONS)
def test_a_position_of_the_wrong_width_is_refused(name):
    position = POSITIONS[name]
    position.check(8, 2)
    if name == "sinusoidal":
        with pytest.raises(ValueError, match="must be even"):
            position.check(7, 1)
    if name == "rotary":
        with pytest.raises(ValueError, match="must be even"):
            position.check(6, 2)
