from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.lab.study import serialize
from attnlab.ops.feature import FEATURES, Cosformer, Dpfp, Exp, Favor, Hedgehog, Power, Rebased, Relu
from attnlab.ops.feature.random import directions

STARTS = {"scale": 1.0, "shift": 0.0}
every = pytest.mark.parametrize("name", FEATURES)
T, K = 7, 4


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    shares = np.exp(x - x.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def mirrored(x, w):
    return np.concatenate([x @ w.T, -x @ w.T], axis=1)


def favor(x, m=64, seed=0):
    x = x / x.shape[1] ** 0.25
    turned = x @ directions(seed, m, x.shape[1]).astype(float).T
    size = (x * x).sum(axis=1, keepdims=True) / 2
    return np.concatenate([np.exp(turned - size), np.exp(-turned - size)], axis=1) / np.sqrt(2 * m)


def rebased(x, scale, shift):
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    z = scale * (x - mean) / np.sqrt(variance + 1e-5) + shift
    return np.einsum("ta,tb->tab", z, z).reshape(len(x), -1)


def cosformer(x, i):
    angle = np.pi / 2 * i / 512
    return np.concatenate([relu(x) * np.cos(angle)[:, None], relu(x) * np.sin(angle)[:, None]], axis=1)


def taylor(x):
    x = x / K**0.25
    return np.concatenate([np.ones((len(x), 1)), x, np.einsum("ta,tb->tab", x, x).reshape(len(x), -1) / 2**0.5], 1)


def power(x):
    # Each product of two different components occurs in both orders.
    x = x / K**0.25
    return np.stack([x[:, a] * x[:, b] * (1 if a == b else 2**0.5) for a in range(K) for b in range(a, K)], axis=1)


def dpfp(x, nu=1):
    r = np.concatenate([relu(x), relu(-x)], axis=1)
    return np.array([[row[n] * row[(n - s) % (2 * K)] for s in range(1, nu + 1) for n in range(2 * K)] for row in r])


# The equation of each feature map for rows x at positions i, for one side and its learned arrays.
PLAIN = {
    "elu+1": lambda x, i, side, l: np.where(x > 0, x + 1, np.exp(x)),
    "identity": lambda x, i, side, l: x,
    "relu": lambda x, i, side, l: relu(x),
    "squared-relu": lambda x, i, side, l: relu(x) ** 2,
    "exp": lambda x, i, side, l: np.exp(x),
    "softmax": lambda x, i, side, l: softmax(x),
    "t2r": lambda x, i, side, l: relu(x @ l["w"].T + l["b"]),
    "hedgehog": lambda x, i, side, l: np.concatenate([softmax(s * x @ l[f"{side}_w"].T) for s in (1, -1)], axis=1),
    "hedgehog-exp": lambda x, i, side, l: np.exp(mirrored(x, l[f"{side}_w"])),
    "cosformer": lambda x, i, side, l: cosformer(x, i),
    "taylor": lambda x, i, side, l: taylor(x),
    "power": lambda x, i, side, l: power(x),
    "rebased": lambda x, i, side, l: rebased(x, l[f"{side}_scale"], l[f"{side}_shift"]),
    "dpfp": lambda x, i, side, l: dpfp(x),
    "favor+": lambda x, i, side, l: favor(x),
    "narrow": lambda x, i, side, l: np.where(x > 0, x + 1, np.exp(x))[:, :1],
}
DIMENSIONS = {"hedgehog": 2 * K, "hedgehog-exp": 2 * K, "cosformer": 2 * K, "taylor": 1 + K + K**2, "rebased": K**2}
DIMENSIONS |= {"power": K * (K + 1) // 2, "dpfp": 2 * K, "favor+": 128, "narrow": 1}


def value(mapped):
    """Returns the features multiplied by their scale."""
    return mapped.rows if mapped.scale is None else mapped.rows * jnp.exp(mapped.scale)[:, None]


def learned_of(feature, rng):
    """Returns random learned arrays, since initial zeros or ones could hide a mistake."""
    return {n: jnp.asarray(rng.normal(size=[K] * len(shape))) for n, shape in feature.learned.items()}


@every
@pytest.mark.parametrize("side", ["query", "key"])
@pytest.mark.usefixtures("x64")
def test_every_feature_map_equals_its_equation_and_declares_its_dimension(name, side):
    feature, rng = FEATURES[name], np.random.default_rng(0)
    x, i = rng.normal(size=(T, K)), np.arange(T) + 3
    learned = learned_of(feature, rng)
    found = value(getattr(feature, side)(jnp.asarray(x), i, **learned))
    plain = PLAIN[name](x, i, side, {n: np.asarray(a) for n, a in learned.items()})
    np.testing.assert_allclose(found, plain, rtol=1e-12, atol=1e-12)
    assert found.shape == (T, feature.dim(K)) == (T, DIMENSIONS.get(name, K))


@every
def test_initial_parameters_have_their_declared_shapes(name):
    start = FEATURES[name].initial(jax.random.key(0), K)
    assert {n: a.shape for n, a in start.items()} == {n: (K,) * len(s) for n, s in FEATURES[name].learned.items()}


@every
def test_signed_is_declared_if_a_feature_can_be_negative(name):
    feature = FEATURES[name]
    x = jnp.asarray(np.random.default_rng(0).standard_normal((64, K)))
    rows = feature.query(x, jnp.arange(64), **feature.initial(jax.random.key(0), K)).rows
    assert bool((rows < 0).any()) == feature.signed


def test_initial_values_of_learned_maps():
    x = np.random.default_rng(1).normal(size=(200, 32))
    hedgehog = FEATURES["hedgehog"].initial(jax.random.key(0), 32)
    np.testing.assert_array_equal(hedgehog["query_w"], np.eye(32))
    w = FEATURES["t2r"].initial(jax.random.key(0), 32)["w"]
    assert 0.9 < np.std(x @ w.T) < 1.1


@every
@settings(max_examples=8)
@given(data=st.data(), power=st.sampled_from([-30, -5, 0, 2, 3, 4]))
def test_values_and_gradients_are_finite_at_the_extremes(name, data, power):
    feature = FEATURES[name]
    entries = st.lists(st.floats(-1, 1, width=32), min_size=2 * K, max_size=2 * K)
    x = jnp.asarray(data.draw(entries), jnp.float32).reshape(2, K) * 10.0**power
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(sides_back(feature, x)))


@partial(jax.jit, static_argnums=0)
def sides_back(feature, x):
    """Returns the features of both sides, and the gradients of their sums."""
    learned = feature.initial(jax.random.key(0), K)
    run = lambda x: [side(x, np.arange(len(x)), **learned) for side in (feature.query, feature.key)]
    mapped, back = jax.vjp(run, x)
    return mapped, back(jax.tree.map(jnp.ones_like, mapped))


@every
def test_float16_rows_are_computed_in_float32(name):
    feature = FEATURES[name]
    learned = feature.initial(jax.random.key(0), K)
    # Their squares overflow float16, and their exponentials underflow it.
    mapped = feature.key(jnp.full((2, K), 300, jnp.float16).at[1].set(-30), np.arange(2), **learned)
    assert all(a.dtype == jnp.float32 and np.isfinite(a).all() for a in jax.tree.leaves(mapped))


@pytest.mark.parametrize("name", [n for n, feature in FEATURES.items() if feature.scaled])
def test_the_largest_feature_of_a_scaled_row_is_one(name):
    feature = FEATURES[name]
    x = jnp.array([[1e4, -2e4, 5.0, 0.0], [-90, -91, -92, -93.0]])
    mapped = feature.key(x, np.arange(2), **feature.initial(jax.random.key(0), K))
    np.testing.assert_allclose(mapped.rows.max(axis=1), [1, 1])


@pytest.mark.usefixtures("x64")
def test_elu_plus_one_of_a_few_numbers():
    rows = FEATURES["elu+1"].query(jnp.array([[-100.0, -1, 0, 2]]), np.arange(1)).rows
    np.testing.assert_allclose(rows, [[np.exp(-100), np.exp(-1), 1, 3]], rtol=1e-14)


@pytest.mark.usefixtures("x64")
def test_hedgehog_by_hand_has_a_sum_over_each_half():
    """Checks x = (ln 2, 0): softmax(x) = (2, 1) / 3, softmax(−x) = (1, 2) / 3, and jointly (2, 1, ½, 1) / 4½."""
    x, w = jnp.log(jnp.array([[2.0, 1.0]])), {"query_w": jnp.eye(2), "key_w": jnp.array([[0.0, 1.0], [1.0, 0.0]])}
    rows = Hedgehog().query(x, np.arange(1), **w).rows
    np.testing.assert_allclose(rows, [[2 / 3, 1 / 3, 1 / 3, 2 / 3]], rtol=1e-14)
    np.testing.assert_allclose(Hedgehog().key(x, np.arange(1), **w).rows, [[1 / 3, 2 / 3, 2 / 3, 1 / 3]], rtol=1e-14)
    rows = Hedgehog(joint=True).query(x, np.arange(1), **w).rows
    np.testing.assert_allclose(rows, [[4 / 9, 2 / 9, 1 / 9, 2 / 9]], rtol=1e-14)


@pytest.mark.usefixtures("x64")
def test_joint_hedgehog_with_a_doubled_w_is_that_of_flash_linear_attention():
    """There W x is doubled: for x = (ln 2, 0), the features are (4, 1, ¼, 1) / 6¼."""
    doubled = {"query_w": 2 * jnp.eye(2), "key_w": 2 * jnp.eye(2)}
    rows = Hedgehog(joint=True).query(jnp.log(jnp.array([[2.0, 1.0]])), np.arange(1), **doubled).rows
    np.testing.assert_allclose(rows, [[16 / 25, 4 / 25, 1 / 25, 4 / 25]], rtol=1e-14)


@pytest.mark.usefixtures("x64")
def test_feature_maps_equal_the_functions_of_pytorch():
    torch = pytest.importorskip("torch")
    F, rng = torch.nn.functional, np.random.default_rng(4)
    x, i = rng.normal(size=(T, K)), np.arange(T)
    at = torch.tensor(x)
    norm = lambda l: F.layer_norm(at, (K,), l["query_scale"], l["query_shift"])
    expected = {
        "elu+1": lambda l: F.elu(at) + 1,
        "squared-relu": lambda l: F.relu(at).square(),
        "softmax": lambda l: F.softmax(at, dim=1),
        "t2r": lambda l: F.relu(F.linear(at, l["w"], l["b"])),
        "hedgehog": lambda l: torch.cat([F.softmax(s * F.linear(at, l["query_w"]), dim=1) for s in (1, -1)], dim=1),
        "rebased": lambda l: torch.stack([torch.kron(row, row) for row in norm(l)]),
    }
    for name, of in expected.items():
        learned = learned_of(FEATURES[name], rng)
        found = value(FEATURES[name].query(jnp.asarray(x), i, **learned))
        other = of({n: torch.tensor(np.asarray(a)) for n, a in learned.items()})
        np.testing.assert_allclose(found, other.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_taylor_is_the_exponential_to_second_order():
    q, k = np.random.default_rng(0).normal(size=(2, T, K))
    phi = FEATURES["taylor"]
    s = q @ k.T / K**0.5
    found = phi.query(jnp.asarray(q), np.arange(T)).rows @ phi.key(jnp.asarray(k), np.arange(T)).rows.T
    np.testing.assert_allclose(found, 1 + s + s**2 / 2, rtol=1e-12)
    assert (found >= 0.5).all()


@pytest.mark.usefixtures("x64")
def test_rebased_is_the_square_of_a_product():
    feature, rng = FEATURES["rebased"], np.random.default_rng(0)
    q, k = rng.normal(size=(2, T, K))
    learned = learned_of(feature, rng)
    gain = {n: np.asarray(a) for n, a in learned.items()}
    norm = lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    zq, zk = (gain[f"{s}_scale"] * norm(x) + gain[f"{s}_shift"] for s, x in (("query", q), ("key", k)))
    found = feature.query(jnp.asarray(q), np.arange(T), **learned).rows
    found = found @ feature.key(jnp.asarray(k), np.arange(T), **learned).rows.T
    np.testing.assert_allclose(found, (zq @ zk.T) ** 2, rtol=1e-10)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("degree", [2, 4])
def test_power_is_the_power_of_the_product(degree):
    q, k = np.random.default_rng(0).normal(size=(2, 5, K))
    feature, i = Power(degree), np.arange(5)
    product = value(feature.query(jnp.asarray(q), i)) @ value(feature.key(jnp.asarray(k), i)).T
    np.testing.assert_allclose(product, (q @ k.T / K**0.5) ** degree, rtol=1e-12, atol=1e-12)
    for wrong in (0, 1, 3):
        with pytest.raises(ValueError, match=f"degree={wrong} must be an even number"):
            Power(wrong)


@pytest.mark.usefixtures("x64")
def test_rebased_adds_its_epsilon_to_the_variance():
    """Checks x = (.003, −.003), with variance 9e-6: for ε = 1.6e-5 each component is divided by .005."""
    learned = {f"{side}_{name}": jnp.full(2, start) for side in ("query", "key") for name, start in STARTS.items()}
    x, feature = jnp.array([[0.003, -0.003]]), Rebased(epsilon=1.6e-5)
    for side in (feature.query, feature.key):
        np.testing.assert_allclose(side(x, np.arange(1), **learned).rows, [[0.36, -0.36, -0.36, 0.36]], rtol=1e-12)
    q, k, of = feature.kernel(x, -x, **learned)
    np.testing.assert_allclose(of(q @ k.T), [[0.72**2]], rtol=1e-12)


def test_rebased_has_the_published_epsilon_and_older_runs_keep_theirs():
    assert Rebased().epsilon == 1e-5
    written = serialize.write(Rebased())
    del written["fields"]["epsilon"]
    assert serialize.read(written, Rebased).epsilon == 1e-6
    for epsilon in (0.0, -1e-5, 1.0, float("nan")):
        with pytest.raises(ValueError, match=r"^epsilon="):
            Rebased(epsilon=epsilon)


def test_dpfp_by_hand():
    # r = [1 0 0 2]. Rolled by one it is [2 1 0 0], by two [0 2 1 0], by three [0 0 2 1].
    rows = Dpfp(nu=3).query(jnp.array([[1.0, -2]]), np.arange(1)).rows
    np.testing.assert_array_equal(rows, [[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]])


@pytest.mark.usefixtures("x64")
def test_cosformer_weighs_by_distance():
    q, k = np.random.default_rng(0).normal(size=(2, T, K))
    i, j = np.arange(T) + 9, np.arange(T)
    phi = Cosformer(length=16)
    found = phi.query(jnp.asarray(q), i).rows @ phi.key(jnp.asarray(k), j).rows.T
    plain = relu(q) @ relu(k).T * np.cos(np.pi / 2 * (i[:, None] - j[None, :]) / 16)
    np.testing.assert_allclose(found, plain, atol=1e-12)
    assert (found >= 0).all()


def test_cosformer_has_no_position_beyond_its_length():
    phi = Cosformer(length=4)
    phi.check(np.arange(4))
    with pytest.raises(ValueError, match=r"Cosformer\(length=4\) supports positions 0 … 3, got 4"):
        phi.check(np.arange(5))
    with pytest.raises(ValueError, match=r"supports positions 0 … 3, got -1"):
        phi.check(jnp.array([-1]))
    assert phi.with_length(8) == Cosformer(length=8)
    x = jnp.ones((3, K))
    query, key = jax.jit(lambda i: (phi.query(x, i).rows, phi.key(x, i).rows))(jnp.array([3, 4, -1]))
    np.testing.assert_array_equal(np.isnan(query).all(axis=1), [False, True, True])
    assert np.isfinite(key).all()
    assert not np.any(key[1:])


@pytest.mark.parametrize(("m", "K"), [(8, 8), (20, 8), (3, 16)])
def test_directions_are_orthogonal_within_a_block_and_gaussian_in_length(m, K):
    w = directions(3, m, K)
    assert w.shape == (m, K)
    assert w.dtype == np.float32
    for block in np.split(w, range(K, m, K)):
        unit = block / np.linalg.norm(block, axis=1, keepdims=True)
        np.testing.assert_allclose(unit @ unit.T, np.eye(len(block)), atol=1e-6)
    sizes = [(directions(seed, m, K) ** 2).sum(axis=1).mean() for seed in range(200)]
    # Squared norms have K degrees of freedom: mean K and variance 2K.
    assert abs(np.mean(sizes) - K) < 4 * np.sqrt(2 * K / (200 * m))
    assert np.any(directions(4, m, K) != w)


def test_favor_is_unbiased_and_its_variance_falls_with_the_number_of_features():
    # The vectors are short, so that the estimates have no heavy tail, which a standard error does not describe.
    q, k = np.random.default_rng(5).normal(size=(2, 6, 8)) / 2
    exact = np.exp(np.sum(q * k, axis=1) / np.sqrt(8))
    spread = {}
    for m in (8, 32):
        # The formula itself, which the feature map equals: with the feature map, each seed would compile a program.
        draws = np.array([np.sum(favor(q, m, seed) * favor(k, m, seed), axis=1) for seed in range(2000)])
        error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
        assert (np.abs(draws.mean(axis=0) - exact) < 4 * error).all()
        # A bias of a few hundredths would be detected.
        assert (error < 0.02 * exact).all()
        spread[m] = draws.var(axis=0)
    assert 2 < np.median(spread[8] / spread[32]) < 8


def test_random_features_are_the_same_in_every_precision():
    x = np.random.default_rng(0).normal(size=(3, K)).astype(np.float16)
    narrow = FEATURES["favor+"].query(jnp.asarray(x), np.arange(3)).rows
    with jax.enable_x64(True):
        wide = FEATURES["favor+"].query(jnp.asarray(x, jnp.float64), np.arange(3)).rows
    np.testing.assert_allclose(narrow, wide, rtol=1e-5)


def test_invalid_fields_are_refused():
    for refused in (
        lambda: Dpfp(nu=0),
        lambda: Favor(m=0),
        lambda: Cosformer(length=0),
        lambda: Favor(seed=-1),
        lambda: Hedgehog(activation=Relu()),
    ):
        with pytest.raises(ValueError, match="must be"):
            refused()
    assert Hedgehog(activation=Exp()) == FEATURES["hedgehog-exp"]
