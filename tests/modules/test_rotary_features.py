"""Checks rotary positions in linear attention: features are rotated in the numerator, but not in the denominator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from attnlab.analysis.maps import with_maps
from attnlab.mechanisms import MECHANISMS, Linear, ShortConvolution
from attnlab.mechanisms.causal import causal
from attnlab.modules.attention import Attention
from attnlab.modules.position import Rotary, Rotary2D, ShiftedByOne, XPos
from attnlab.ops.feature import FEATURES, Cosformer, Identity, Narrow, RotatedFeatures, Taylor
from attnlab.ops.mask import Causal, EdgeList, KeyPadding, Window

T, K, V = 7, 6, 3
# An even and an odd number of features, a map with exponentials, and one without a denominator.
LINEAR = {
    "elu+1": Linear(block=2),
    "odd": Linear(feature=Narrow(Taylor(), 4), block=2),
    "exp": Linear(feature=FEATURES["exp"], block=2),
    "plain": Linear(feature=Identity(), normalise=False, block=2),
}
POSITIONS = {"rotary": Rotary(base=50.0), "rotary-2d": Rotary2D(columns=3, base=50.0)}
every = pytest.mark.parametrize("name", LINEAR)


def turned(name, position=POSITIONS["rotary"]):
    return LINEAR[name].with_rotary(position)


def inputs():
    return jax.random.normal(jax.random.key(0), (3, T, K))


def rotation(M, at, position):
    """Returns the block-diagonal matrix R of a position, one block per pair. Remaining components do not change."""
    R, by = np.eye(M), position.rotation_size
    whole = M - M % by
    parts = [(0, whole, at)]
    if isinstance(position, Rotary2D):
        parts = [(0, whole // 2, at // position.columns), (whole // 2, whole, at % position.columns)]
    for begin, end, place in parts:
        for n in range(0, end - begin, 2):
            angle = place * position.base ** (-n / (end - begin))
            c, s = np.cos(angle), np.sin(angle)
            R[begin + n : begin + n + 2, begin + n : begin + n + 2] = [[c, -s], [s, c]]
    return R


def written_out(mechanism, q, k, v, position, allowed):
    """Computes eq. 19 of Su et al. 2021, pair by pair."""
    sides = mechanism.feature.query(q, np.arange(T)), mechanism.feature.key(k, np.arange(T))
    fq, fk = (np.asarray(s.rows * (1 if s.scale is None else jnp.exp(s.scale)[:, None])) for s in sides)
    R = [rotation(fq.shape[1], t, position) for t in range(T)]
    y = np.zeros((T, V))
    for t in range(T):
        seen = [s for s in range(T) if allowed[t, s]]
        above = sum(((R[t] @ fq[t]) @ (R[s] @ fk[s]) * v[s] for s in seen), np.zeros(V))
        below = sum(fq[t] @ fk[s] for s in seen) if mechanism.normalise else 1
        y[t] = above / below if seen else 0
    return y


@pytest.mark.parametrize(
    ("name", "position"), [*((name, "rotary") for name in LINEAR), ("elu+1", "rotary-2d"), ("odd", "rotary-2d")]
)
@pytest.mark.usefixtures("x64")
def test_every_form_is_the_equation(name, position):
    position = POSITIONS[position]
    q, k, v = inputs()
    v, keep, i = v[:, :V], np.arange(T) != 2, np.arange(T)
    mechanism, plain = turned(name, position), LINEAR[name]
    masks = {"full": np.ones((T, T), bool), "kept": keep[None, :].repeat(T, 0), "causal": np.tri(T, dtype=bool)}
    masks["window"] = np.abs(i[:, None] - i[None, :]) < 3
    wanted = {kind: written_out(plain, q, k, np.asarray(v), position, allowed) for kind, allowed in masks.items()}
    edges = EdgeList(*(np.array(side, np.int32) for side in np.nonzero(masks["window"])))

    @jax.jit
    def forms(q, k, v):
        return {
            "full": [mechanism.attend(q, k, v)],
            "kept": [mechanism.attend(q, k, v, KeyPadding(jnp.asarray(keep)))],
            "window": [mechanism.attend(q, k, v, mask) for mask in (Window(3, 3), edges)],
            "causal": [
                mechanism.attend(q, k, v, Causal()),
                *(causal(mechanism, q, k, v, block=n) for n in (None, 1, 3)),
            ],
        }

    for kind, found in forms(q, k, v).items():
        for y in found:
            np.testing.assert_allclose(y, wanted[kind], atol=1e-11, err_msg=kind)


@every
@pytest.mark.usefixtures("x64")
def test_outputs_depend_on_distance_alone(name):
    mechanism, (q, k, v) = turned(name), inputs()
    at = np.arange(T, dtype=np.int32)
    here, there = (mechanism.attend(q, k, v, i=at + n, j=at + n) for n in (0, 40))
    np.testing.assert_allclose(here, there, atol=1e-10)
    assert np.abs(here - mechanism.attend(q, k, v, i=at + 1, j=at)).max() > 1e-3


@every
@pytest.mark.usefixtures("x64")
def test_gradients_are_those_of_finite_differences(name):
    mechanism = turned(name)
    check_grads(lambda *x: causal(mechanism, *x), tuple(inputs() * 0.5), order=1, modes=("rev",))


def test_without_denominator_and_feature_map_it_rotates_queries_and_keys():
    q, k, v = inputs()
    at = np.arange(T, dtype=np.int32)
    y = LINEAR["plain"].attend(*Rotary(base=50.0).rotate(q, k, at, at), v)
    np.testing.assert_allclose(turned("plain").attend(q, k, v), y, atol=1e-5)


@pytest.mark.parametrize("position", [Rotary(), Rotary2D(columns=3), ShiftedByOne(Rotary())], ids=str)
@pytest.mark.parametrize("key_heads", [2, 1])
def test_a_module_rotates_features_in_each_form(position, key_heads):
    make = lambda mechanism: jax.jit(lambda: Attention(jax.random.key(0), 8, 2, mechanism, key_heads))()
    module = make(Linear(block=2))
    x = jax.random.normal(jax.random.key(1), (6, 8))
    y, _ = module.causal(x, None, position)
    at = jnp.arange(6, dtype=jnp.int32)
    state, steps = module.start(6, x.dtype), []
    for t in range(6):
        one, state = module.extend(x[t][None], state, at[t][None], position)
        steps.append(one[0])
    np.testing.assert_allclose(jnp.stack(steps), y, atol=1e-5)
    np.testing.assert_allclose(module.attend(x, None, Causal(), position)[0], y, atol=1e-5)
    seen, map_ = with_maps(module).causal(x, None, position)
    np.testing.assert_allclose(seen, y, atol=1e-5)
    # The map is the one that is computed: the values weighted by it give the output.
    values = jnp.repeat(module.keys_values(x)["v"], 2 // key_heads, axis=1)
    np.testing.assert_allclose(module.o(jnp.einsum("hts,shv->thv", map_, values).reshape(6, 8)), y, atol=1e-5)
    assert np.abs(y - module.causal(x)[0]).max() > 1e-3


def test_padding_has_no_effect():
    module = jax.jit(lambda: Attention(jax.random.key(0), 8, 2, Linear(block=2)))()
    x = jax.random.normal(jax.random.key(1), (6, 8))
    keep = jnp.arange(6) < 4
    for other in (0.0, 1e9):
        padded = jnp.where(keep[:, None], x, other)
        np.testing.assert_allclose(
            module.causal(padded, keep, Rotary())[0][:4], module.causal(x[:4], None, Rotary())[0], atol=1e-6
        )


def test_mechanisms_without_features_or_with_own_positions_or_decay_are_refused():
    for position in (XPos(), ShiftedByOne(XPos())):
        assert "not factors that decay" in position.refusal(Linear())
    for mechanism in (
        *(MECHANISMS[name] for name in ("gated-linear", "kda", "fast-weight")),
        Linear(feature=Cosformer()),
    ):
        assert mechanism.with_rotary(Rotary()) is None
        assert "products of q and k" in Rotary().refusal(mechanism)
    assert ShortConvolution(Linear(feature=Cosformer())).with_rotary(Rotary()) is None


def test_too_few_features_are_refused():
    with pytest.raises(ValueError, match=r"Rotary.* rotates features in groups of 2, but Narrow.* has 1$"):
        Linear(feature=Narrow()).with_rotary(Rotary()).attend(*inputs())


def test_equal_positions_make_equal_mechanisms():
    assert Linear().with_rotary(Rotary()) == Linear().with_rotary(Rotary()) != Linear().with_rotary(Rotary(base=50.0))
    assert hash(Linear().with_rotary(Rotary())) == hash(Linear().with_rotary(Rotary()))


def test_its_flops_include_rotations_and_separately_counted_pairs():
    plain, mechanism = Linear(), turned("elu+1")
    assert isinstance(mechanism.feature, RotatedFeatures)
    assert mechanism.cost(64, 64, 8, 8).flops - plain.cost(64, 64, 8, 8).flops == 3 * 8 * (64 + 64)
    assert mechanism.cost(64, 64, 8, 8).state_bytes == plain.cost(64, 64, 8, 8).state_bytes
    assert mechanism.cost(64, 64, 8, 8, 16).flops - mechanism.cost(64, 64, 8, 8).flops == 64 * 16 * 2 * (16 + 9)
