"""Checks rotary positions of a share of each head, and scaled ones, in models and with every kind of mechanism."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.lab.study import Experiment, Study, serialize
from attnlab.lab.study.overrides import apply
from attnlab.mechanisms import MECHANISMS, Linear, ShortConvolution, Softmax
from attnlab.models import Language
from attnlab.modules.attention import Attention
from attnlab.modules.position import Rotary, ShiftedByOne
from attnlab.ops.mask import Causal
from attnlab.ops.position import LinearScaling, Llama3Scaling, YarnScaling
from attnlab.tasks import TASKS

WIDTH = 8  # width of a head


def rotated(x, i, position, width):
    """Rotates the first `width` components of each row as complex numbers. The other components do not change."""
    x = np.array(x, np.float64)
    for row, at in zip(x, np.asarray(i), strict=True):
        for n in range(width // 2):
            a, b = (n, n + width // 2) if position.pairs == "halves" else (2 * n, 2 * n + 1)
            z = (row[a] + 1j * row[b]) * np.exp(1j * at * position.base ** (-2 * n / width))
            row[a], row[b] = z.real, z.imag
    return x


@pytest.mark.parametrize(("fraction", "width"), [(1.0, 8), (0.75, 6), (0.5, 4), (0.25, 2)])
@pytest.mark.parametrize("pairs", ["interleaved", "halves"])
def test_a_share_of_a_head_rotates(fraction, width, pairs):
    position = Rotary(base=50.0, pairs=pairs, fraction=fraction)
    q, k = (jnp.asarray(np.random.default_rng(n).standard_normal((n, WIDTH))) for n in (3, 5))
    i, j = jnp.arange(3, dtype=jnp.int32) + 4, jnp.arange(5, dtype=jnp.int32)
    for found, x, at in zip(position.rotate(q, k, i, j), (q, k), (i, j), strict=True):
        np.testing.assert_allclose(found, rotated(x, at, position, width), atol=1e-5)


# rotation_size is the smallest width whose rotated share is an even number.
@pytest.mark.parametrize(("fraction", "size"), [(1.0, 2), (0.5, 4), (0.25, 8), (0.4, 5), (2 / 3, 3), (1 / 3, 6)])
def test_heads_whose_share_is_no_even_number_are_refused(fraction, size):
    position = Rotary(fraction=fraction)
    assert position.rotation_size == size
    for heads in (1, 2, 3):
        for width in range(1, 31):
            if (width * size) % size == 0:
                position.check(width * size * heads, heads)
            if width % size:
                with pytest.raises(ValueError, match="must be"):
                    position.check(width * heads, heads)
    even = round(fraction * size)
    assert even % 2 == 0
    assert abs(even - fraction * size) < 1e-9


def test_the_refusal_names_the_fields():
    with pytest.raises(
        ValueError,
        match=r"^model.width=8 over model.heads=2 must be divisible by 8 for rotary \(fraction=0.25\) positions$",
    ):
        Language(width=8, heads=2, layers=1, position=Rotary(fraction=0.25))


@pytest.mark.parametrize("fraction", [0.0, -0.5, 1.5, float("nan")])
def test_a_share_lies_above_zero_and_at_most_at_one(fraction):
    with pytest.raises(ValueError, match=f"^fraction={fraction} must be above 0 and at most 1$"):
        Rotary(fraction=fraction)


def test_bases_that_give_no_frequencies_are_refused():
    with pytest.raises(ValueError, match=r"^base=1.0 must be above 1 with scaling=YarnScaling"):
        Rotary(base=1.0, scaling=YarnScaling())
    with pytest.raises(ValueError, match=r"^base=inf must be above 0 and finite$"):
        Rotary(base=float("inf"))


PARTIAL = Rotary(base=50.0, fraction=0.5)
SCALED = Rotary(base=50.0, scaling=Llama3Scaling(4.0, 8))
HOT = Rotary(base=50.0, pairs="halves", fraction=0.5, scaling=YarnScaling(4.0, 8))


CASES = {
    "softmax": ("softmax", PARTIAL),
    "yarn": ("softmax", HOT),
    "linear": ("linear", PARTIAL),
    "short-convolution": ("short-convolution", PARTIAL),
    "delta": ("delta", PARTIAL),
    "retention": ("retention", PARTIAL),
    "scaled-softmax": ("softmax", SCALED),
    "scaled-linear": ("linear", SCALED),
    "shifted-linear": ("linear", ShiftedByOne(PARTIAL)),
}


@pytest.mark.parametrize("case", CASES)
def test_every_form_agrees_and_only_distances_count(case):
    name, position = CASES[case]
    module = jax.jit(lambda: Attention(jax.random.key(0), 2 * WIDTH, 2, MECHANISMS[name]))()
    assert position.refusal(module.mechanism) is None

    @jax.jit
    def forms(x):
        at = np.arange(6, dtype=np.int32) + 7

        def step(state, token):
            y, state = module.extend(token[0][None], state, token[1][None], position)
            return state, y[0]

        steps = jax.lax.scan(step, module.start(6, x.dtype), (x, jnp.asarray(at)))[1]
        found = [module.causal(x, None, position)[0], steps]  # at positions 0 … 5, and from 7 on
        places = {"i": at, "j": at} if module.mechanism.traits.non_causal else {}
        return [*found, module.attend(x, None, Causal(), position, **places)[0], module.causal(x)[0]]

    whole, *others, plain = forms(jax.random.normal(jax.random.key(1), (6, 2 * WIDTH)))
    for each in others:
        np.testing.assert_allclose(each, whole, atol=2e-5)
    assert np.abs(whole - plain).max() > 1e-4


def test_features_are_rotated_in_part_and_the_others_pass():
    mechanism = Linear(block=2).with_rotary(PARTIAL)
    rng = np.random.default_rng(0)
    q, k, v = (jnp.asarray(rng.standard_normal((5, n)), jnp.float32) for n in (WIDTH, WIDTH, 3))
    phi = lambda x: np.where(np.asarray(x) > 0, np.asarray(x) + 1, np.exp(np.minimum(np.asarray(x), 0)))
    at = np.arange(5)
    turn = lambda x: rotated(phi(x), at, PARTIAL, 4)
    mask = np.tril(np.ones((5, 5)))
    expected = (turn(q) @ turn(k).T * mask) @ np.asarray(v) / (phi(q) @ phi(k).T * mask).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mechanism.causal(q, k, v), expected, atol=1e-5)


@pytest.mark.parametrize(("fraction", "width"), [(0.25, 10), (0.05, 10), (0.3, 10), (1.0, 3)])
def test_a_share_of_components_that_is_no_even_number_is_refused(fraction, width):
    q, i = jnp.ones((3, width)), jnp.arange(3, dtype=jnp.int32)
    with pytest.raises(ValueError, match=f"^fraction={fraction} of {width} components is not an even number$"):
        Rotary(fraction=fraction).rotate(q, q, i, i)


def test_features_too_few_for_their_share_are_refused():
    x = jnp.ones((3, 4))
    with pytest.raises(ValueError, match=r"rotates features in groups of 8, but .* has 4$"):
        Linear().with_rotary(Rotary(fraction=0.25)).attend(x, x, x)


def test_features_have_no_attention_factor():
    expected = "its features support rotations, but not an attention factor; set model.position.scaling"
    for position in (HOT, ShiftedByOne(HOT)):
        assert str(position.refusal(Linear())).startswith(expected)
        assert position.refusal(Softmax()) is None
    plain = Rotary(scaling=YarnScaling(attention_factor=1.0))
    assert plain.refusal(Linear()) is None
    assert plain.refusal(ShortConvolution(Linear())) is None


def test_yarn_multiplies_scores_by_the_square_of_its_factor():
    one, other = (Rotary(scaling=YarnScaling(attention_factor=m)) for m in (1.0, 1.5))
    q, i = jnp.asarray(np.random.default_rng(0).standard_normal((4, WIDTH))), jnp.arange(4, dtype=jnp.int32)
    plain, scaled = (
        np.matmul(*(np.asarray(x) for x in (q, k.T))) for q, k in (p.rotate(q, q, i, i) for p in (one, other))
    )
    np.testing.assert_allclose(scaled, 2.25 * plain, rtol=1e-5)


STUDY = Study(Experiment(TASKS["shakespeare"], Language(width=16, heads=2, layers=1, position=Rotary())))


def test_scalings_are_set_from_the_command_line_and_read_back():
    overrides = ["model.position.fraction=0.5", "model.position.scaling=yarn", "model.position.scaling.factor=8"]
    experiment = apply(STUDY, overrides).base
    assert experiment.model.position == Rotary(fraction=0.5, scaling=YarnScaling(factor=8.0))
    written = serialize.write(experiment)
    assert written["model"]["fields"]["position"]["fields"]["scaling"]["name"] == "yarn"
    assert serialize.read(written) == experiment
    for name in ("fraction", "scaling"):  # as in a run that is older than these fields
        del written["model"]["fields"]["position"]["fields"][name]
    assert serialize.read(written).model.position == Rotary()
    none = apply(Study(experiment), ["model.position.scaling=none"]).base.model.position
    assert none == replace(experiment.model.position, scaling=None)
    assert apply(STUDY, ["model.position.scaling=linear"]).base.model.position.scaling == LinearScaling()


@pytest.mark.parametrize(
    ("overrides", "complaint"),
    [
        (
            ["model.position.scaling=yarm"],
            "scaling='yarm' is not known; nearest: 'yarn'; known: linear, yarn, llama3",
        ),
        (["model.position.scaling.factor=8"], "model.position.scaling is none, which has no fields"),
        (["model.position.scaling=linear", "model.position.scaling.factor=0.5"], "factor=0.5 must be at least 1"),
        (["model.position=sinusoidal", "model.position.scaling=yarn"], "Sinusoidal has no field 'scaling'"),
    ],
)
def test_overrides_that_cannot_be_are_refused_in_one_line(overrides, complaint):
    with pytest.raises(ValueError, match=complaint) as refusal:
        apply(STUDY, overrides)
    assert "\n" not in str(refusal.value)
