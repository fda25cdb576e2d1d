import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.mechanisms import MECHANISMS, Linear, ShortConvolution, Softmax
from attnlab.mechanisms.differential import Differential, Differential2
from attnlab.mechanisms.pairwise import Pairwise
from attnlab.modules.attention import Attention
from attnlab.modules.position import (
    POSITIONS,
    T5,
    ALiBi,
    Floater,
    Learned,
    Learned2D,
    Position,
    Quadratic2D,
    Rotary,
    Rotary2D,
    Shaw,
    ShiftedByOne,
    Sinusoidal2D,
    XPos,
)
from attnlab.ops.mask import Causal, Full
from attnlab.ops.position import xpos_max_length

from .test_attention import token_by_token

I = np.arange(6, dtype=np.int32)


def made(position, causal=True, layers=1):
    make = lambda: position.create(jax.random.key(2), 8, 2, layers, causal)
    # A position without parameters is not a pytree.
    return jax.jit(make)() if position.data_driven else make()


def attention(mechanism=Softmax()):
    return jax.jit(lambda: Attention(jax.random.key(0), 8, 2, mechanism))()


def x():
    return jax.random.normal(jax.random.key(1), (6, 8))


# Liu et al. 2020, table 1 (sinusoidal, embedding, relative, FLOATER). The other rows use the same criteria.
@pytest.mark.parametrize(
    ("name", "inductive", "data_driven", "parameter_efficient"),
    [
        ("sinusoidal", True, False, True),
        ("learned", False, True, False),
        ("shaw", False, True, True),
        ("floater", True, True, True),
        ("t5", False, True, True),
        ("rotary", True, False, True),
        ("xpos", True, False, True),
        ("alibi", True, False, True),
        ("sinusoidal-2d", True, False, True),
        ("learned-2d", False, True, False),
        ("rotary-2d", True, False, True),
        ("quadratic-2d", True, True, True),
        ("none", True, False, True),
    ],
)
def test_declared_properties_of_positions(name, inductive, data_driven, parameter_efficient):
    position = POSITIONS[name]
    facts = position.inductive, position.data_driven, position.parameter_efficient
    assert facts == (inductive, data_driven, parameter_efficient)
    line = position.line.lower()
    assert (inductive, data_driven) == ("extrapolates" in line, "learned" in line)
    assert parameter_efficient == ("grows with the length" not in line)
    count = lambda position: sum(leaf.size for leaf in jax.tree.leaves(made(position)))
    assert (not data_driven) or count(position) > 0
    if position.max_length("float32") is not None and data_driven:
        assert not parameter_efficient


def test_registry_contains_every_position():
    assert set(POSITIONS) == {
        "none", "sinusoidal", "learned", "shaw", "t5", "rotary", "xpos", "alibi", "floater", "sinusoidal-2d",
        "learned-2d", "rotary-2d", "quadratic-2d",
    }  # fmt: skip


WITHIN = [name for name, each in POSITIONS.items() if each.rotary or each.has_bias]


@pytest.mark.parametrize("name", WITHIN)
def test_decoding_equals_the_parallel_form_and_depends_on_order(name):
    module, position = attention(), made(POSITIONS[name])

    @jax.jit
    def forms(module, x):
        step = lambda state, here: module.extend(here[0][None], state, here[1][None], position)[::-1]
        state, rows = jax.lax.scan(step, module.start(8, x.dtype), (x, jnp.arange(6)))
        new, _ = module.extend(x[:2], state, jnp.arange(6, 8), position)
        longer = jnp.concatenate([x, x[:2]])
        return rows[:, 0], module.causal(x, None, position)[0], new, module.causal(longer, None, position)[0][6:]

    steps, whole, new, longer = forms(module, x())
    np.testing.assert_allclose(steps, whole, atol=1e-6)
    np.testing.assert_allclose(new, longer, atol=1e-6)
    assert np.abs(whole - token_by_token(module, x())).max() > 1e-3


@pytest.mark.parametrize("mask", [Full(), Causal()], ids=["full", "causal"])
def test_shaw_is_the_loop_over_all_pairs(mask):
    module, position = attention(), made(Shaw(clip=2))
    q, k, v = (np.asarray(p(x())).reshape(6, 2, 4) for p in (module.q, module.k, module.v))
    keys, values = np.asarray(position.keys[...]), np.asarray(position.values[...])
    joined = np.zeros((6, 2, 4))
    for h in range(2):
        for t in range(6):
            seen = [s for s in range(6) if mask(I[t : t + 1], I[s : s + 1])[0, 0]]
            row = [min(max(s - t, -2), 2) + 2 for s in seen]
            scores = np.array([q[t, h] @ (k[s, h] + keys[h, r]) / 2 for s, r in zip(seen, row, strict=True)])
            share = np.exp(scores) / np.exp(scores).sum()
            joined[t, h] = sum(a * (v[s, h] + values[h, r]) for a, s, r in zip(share, seen, row, strict=True))
    expected = module.o(jnp.asarray(joined.reshape(6, 8), jnp.float32))
    found = jax.jit(lambda module, x: module.attend(x, None, mask, position)[0])(module, x())
    np.testing.assert_allclose(found, expected, atol=1e-5)
    if mask == Causal():
        found = jax.jit(lambda module, x: module.causal(x, None, position)[0])(module, x())
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_alibi_lowers_scores_by_slope_and_distance():
    bias = ALiBi().bias(2)
    q = jnp.zeros((2, 4))
    found = jax.vmap(lambda bias: bias(q, np.array([0, 5]), I))(bias)
    for h, slope in enumerate((2.0**-4, 2.0**-8)):
        np.testing.assert_allclose(found[h], -slope * np.abs(np.array([[0], [5]]) - I[None]), rtol=1e-6)


def test_t5_distinguishes_directions_in_an_encoder_and_uses_all_buckets_for_the_past_in_a_decoder():
    q, far = jnp.zeros((1, 4)), np.array([100], np.int32)
    j = np.array([60, 100, 140], np.int32)
    two, one = (made(T5(), causal).bias(2) for causal in (False, True))
    both, past = (np.asarray(jax.vmap(lambda bias: bias(q, far, j))(bias))[:, 0] for bias in (two, one))
    assert len({*both[0]}) == 3
    assert past[0, 2] == past[0, 1] != past[0, 0]
    np.testing.assert_array_equal(past[0], np.asarray(one.numbers)[0, [23, 0, 0]])
    np.testing.assert_array_equal(both[0], np.asarray(two.numbers)[0, [12, 0, 28]])


@pytest.mark.parametrize("position", [Learned(4), Learned2D(columns=2, rows=2)], ids=str)
def test_positions_beyond_a_learned_table_raise_an_error_and_are_never_clamped(position):
    table = made(position)
    assert table.table(4, "float32") is None
    for call in (lambda: table.table(5, "float32"), lambda: table.add(x(), I)):
        with pytest.raises(
            ValueError, match=rf"model.position={type(position).__name__}\(.* supports 4 positions.* has [56]"
        ):
            call()
    rows = jax.jit(lambda i: jax.vmap(lambda i: table.add(jnp.zeros((1, 8)), i[None])[0])(i))(jnp.array([3, 4, -1]))
    assert np.isfinite(rows[0]).all()
    assert np.isnan(rows[1:]).any(axis=1).all()


def test_a_learned_grid_distinguishes_rows_and_columns():
    table = made(Learned2D(columns=2, rows=2))
    p = np.asarray(table.add(jnp.zeros((4, 8)), I[:4]))
    np.testing.assert_array_equal(p[0, :4], p[1, :4])
    np.testing.assert_array_equal(p[0, 4:], p[2, 4:])
    assert len({tuple(row) for row in p.tolist()}) == 4


def test_quadratic_scores_are_highest_at_the_center_of_a_head():
    hooks = made(Quadratic2D(columns=3))
    centre, alpha = np.array(hooks.centres[...]), np.log1p(np.exp(np.array(hooks.sharpness[...])))
    for h in range(2):
        bias = jax.tree.map(lambda leaf, h=h: leaf[h], hooks.bias(2))(x()[:, :4], I, I)
        for t in range(6):
            for j in range(6):
                away = np.array([j // 3 - t // 3, j % 3 - t % 3]) - centre[h]
                assert bias[t, j] == pytest.approx(-alpha[h] * away @ away, rel=1e-5)


def test_xpos_is_rotary_in_an_encoder_and_refuses_sequences_beyond_its_length():
    assert made(XPos(), causal=False) == Rotary()
    assert made(XPos()) == XPos()
    reach = xpos_max_length("float16")
    assert XPos().table(reach, "float16") is None
    with pytest.raises(ValueError, match=rf"XPos\(.* supports {reach} positions, but a sequence has {reach + 1}"):
        XPos().table(reach + 1, "float16")
    assert XPos(scale=1024.0).table(reach + 1, "float16") is None


def solved(flow, length, step, finer=8):
    """Computes the path by Euler's improved method on a much finer grid, one point after another, in float64."""
    w, b, u, c = (np.asarray(p[...], np.float64) for p in (flow.inner.w, flow.inner.b, flow.outer.w, flow.outer.b))
    h = lambda t, p: np.tanh(np.concatenate([p, [t]]) @ w + b) @ u + c
    paths = []
    for p in np.asarray(flow.first[...], np.float64):
        points, small = [p], step / finer
        for n in range((length - 1) * finer):
            middle = p + small / 2 * h(n * small, p)
            p = p + small * h((n + 0.5) * small, middle)
            points.append(p)
        paths.append(points[::finer])
    return np.array(paths)


def test_floater_solves_its_differential_equation_at_any_length():
    flow = made(Floater(step=0.25), layers=2)
    table = jax.jit(lambda flow: flow.table(12, "float32"))(flow)
    assert table.shape == (2, 12, 8)
    np.testing.assert_allclose(table, solved(flow, 12, 0.25), atol=2e-3)
    shorter = jax.jit(lambda flow: flow.table(5, "float32"))(flow)
    np.testing.assert_array_equal(table[:, :5], shorter)


def test_floater_is_added_to_the_input_or_in_every_layer():
    every = made(Floater(), layers=3)
    table = every.table(6, "float32")
    assert every.add(x(), I, table) is not None
    np.testing.assert_array_equal(every.add(x(), I, table), x())
    np.testing.assert_array_equal(every.per_layer(I[2:4], table), table[:, 2:4])
    once = made(Floater(place="input"), layers=3)
    table = once.table(6, "float32")
    assert table.shape == (1, 6, 8)
    assert once.per_layer(I, table) is None
    np.testing.assert_allclose(once.add(x(), I, table), x() + table[0], atol=1e-6)
    # The dynamics are shared. Each layer has its own initial points.
    count = lambda flow: sum(leaf.size for leaf in jax.tree.leaves(flow))
    assert count(every) - count(once) == 2 * 8


@pytest.mark.parametrize("name", POSITIONS)
def test_a_position_of_the_wrong_width_is_refused(name):
    position = POSITIONS[name]
    position.check(8, 2)
    wrong = {
        "sinusoidal": (7, 1, "must be even"),
        "rotary": (6, 2, "must be even"),
        "xpos": (6, 2, "must be even for xpos"),
        "sinusoidal-2d": (6, 1, "divisible by 4"),
        "learned-2d": (7, 1, "must be even"),
        "rotary-2d": (12, 2, "must be divisible by 4"),
    }
    if name in wrong:
        width, heads, line = wrong[name]
        with pytest.raises(ValueError, match=line):
            position.check(width, heads)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: Learned(0), "length=0"),
        (lambda: Shaw(0), "clip=0"),
        (lambda: T5(buckets=6), "buckets=6"),
        (lambda: T5(distance=16), "distance=16"),
        (lambda: Rotary(0.0), "base=0.0"),
        (lambda: Sinusoidal2D(rows=0), "rows=0"),
        (lambda: XPos(scale=-1.0), "scale=-1.0"),
        (lambda: Floater(step=0.0), "step=0.0"),
        (lambda: Floater(hidden=0), "hidden=0"),
        (lambda: Sinusoidal2D(0), "columns=0"),
        (lambda: Learned2D(rows=0), "rows=0"),
        (lambda: Rotary2D(columns=0), "columns=0"),
    ],
)
def test_invalid_fields_are_refused_by_name(make, line):
    with pytest.raises(ValueError, match=line):
        make()


def test_each_mechanism_declares_which_positions_it_supports():
    for mechanism in MECHANISMS.values():
        assert Position().refusal(mechanism) is None
        turned = mechanism.with_rotary(Rotary())
        assert (XPos().refusal(mechanism) is None) == mechanism.traits.rotary
        assert (Rotary().refusal(mechanism) is None) == (mechanism.traits.rotary or turned is not None)
        features = isinstance(mechanism, Linear) and not mechanism.feature.position_dependent
        inside = isinstance(mechanism, ShortConvolution | Differential | Differential2)
        assert (turned is not None) == (features or inside)
        assert (ALiBi().refusal(mechanism) is None) == mechanism.traits.bias
        assert Shaw().refusal(mechanism) is None or ALiBi().refusal(mechanism) or not isinstance(mechanism, Pairwise)
    assert Shaw().refusal(Softmax()) is None
    assert "bias" in Shaw().refusal(Linear())


@pytest.mark.parametrize("name", POSITIONS)
def test_shifted_positions_are_those_of_the_previous_row(name):
    position = made(POSITIONS[name], causal=False)
    moved, (q, k) = ShiftedByOne(position), jax.random.normal(jax.random.key(0), (2, 6, 4))
    for what in ("rotary", "rotation_size", "has_bias", "has_values"):
        assert getattr(moved, what) == getattr(position, what)
    assert str(moved) == str(position)
    for one, other in zip(moved.rotate(q, k, I, I), position.rotate(q[1:], k[1:], I[:-1], I[:-1]), strict=True):
        np.testing.assert_allclose(one[1:], other, rtol=1e-5, atol=1e-6)
    if (bias := moved.bias(2)) is None:
        return
    of = lambda bias, q, i: jax.vmap(lambda bias: bias(q, i, i))(bias)
    np.testing.assert_allclose(of(bias, q, I)[:, 1:, 1:], of(position.bias(2), q[1:], I[:-1]), rtol=1e-5, atol=1e-6)


def test_xpos_decays_with_distance():
    """Checks q·k = Σ_n Re(q_n k̄_n e^{i(a−b)θ_n}) ζ_n^{(a−b)/scale} for one pair: a rotary product times a decay."""
    q, k = (jax.random.normal(jax.random.key(n), (1, 2)) for n in (5, 6))
    for a, b in ((9, 9), (9, 5), (30, 2)):
        at = [np.array([each]) for each in (a, b)]
        (turned, other), (fading, faded) = Rotary().rotate(q, k, *at), XPos(scale=8.0).rotate(q, k, *at)
        wanted = (turned @ other.T) * (2 / 7) ** ((a - b) / 8)  # .4 / 1.4 of the first pair, as in the authors' code
        np.testing.assert_allclose(fading @ faded.T, wanted, rtol=1e-4)


def test_rotary_positions_of_halves_depend_on_distance_alone():
    q, k = (jax.random.normal(jax.random.key(n), (1, 8)) for n in (5, 6))
    turn = lambda pairs, i, j: Rotary(pairs=pairs).rotate(q, k, np.array([i]), np.array([j]))
    for pairs in ("interleaved", "halves"):
        one, other = (np.vdot(*turn(pairs, *at)) for at in ((5, 2), (9, 6)))
        np.testing.assert_allclose(one, other, rtol=1e-4)
    # Other components form a pair, so weights of one layout are not valid for the other.
    assert np.abs(turn("interleaved", 5, 2)[0] - turn("halves", 5, 2)[0]).max() > 0.1
    other = Rotary()
    object.__setattr__(other, "pairs", "other")  # types are checked in tests only
    with pytest.raises(ValueError, match="pairs='other' must be one of interleaved, halves"):
        other.__post_init__()


def test_rotary_positions_in_a_grid_distinguish_rows_and_columns():
    q, k = (jax.random.normal(jax.random.key(n), (1, 8)) for n in (5, 6))
    product = lambda i, j: float(np.vdot(*Rotary2D(columns=4).rotate(q, k, np.array([i]), np.array([j]))))
    assert product(0, 0) == pytest.approx(float(np.vdot(q, k)), abs=1e-5)
    # One row down and one column to the right gives the same product anywhere. One of the two alone does not.
    assert product(0, 5) == pytest.approx(product(4, 9), abs=1e-5) == pytest.approx(product(10, 15), abs=1e-5)
    assert len({round(product(5, j), 4) for j in (5, 6, 9, 10)}) == 4
    half = lambda x: jnp.concatenate([x[:, :4], jnp.zeros((1, 4))], axis=1)
    rows = lambda i, j: float(np.vdot(*Rotary2D(columns=4).rotate(half(q), half(k), np.array([i]), np.array([j]))))
    assert rows(5, 6) == pytest.approx(rows(5, 5), abs=1e-5) != pytest.approx(rows(5, 9), abs=1e-3)
