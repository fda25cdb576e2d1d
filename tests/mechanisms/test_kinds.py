"""Checks the three kinds of mechanisms: what each declares, and that concrete ones are final."""

from dataclasses import dataclass, fields

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import with_maps
from attnlab.mechanisms import (
    MECHANISMS,
    Linear,
    Mechanism,
    Pairwise,
    Recurrent,
    ShortConvolution,
    Softmax,
    Whole,
    causal,
    weights,
)
from attnlab.mechanisms.bidirectional import Bidirectional
from attnlab.mechanisms.checked import CheckedMechanism
from attnlab.mechanisms.pairwise import CausalPairwise
from attnlab.mechanisms.wrapper import Wrapper
from attnlab.modules.attention import Attention
from attnlab.ops.mask import Causal
from tests.mechanisms.contract import SMALL, inputs, near


def public(kind):
    """Returns the public names that a class defines itself."""
    return {name for name in vars(kind) if not name.startswith("_")}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_of_a_kind_that_agrees_with_its_traits(name):
    mechanism = MECHANISMS[name]
    assert isinstance(mechanism, Pairwise | Recurrent | Whole)
    assert mechanism.traits.decodes == (not isinstance(mechanism, Whole))
    free = isinstance(mechanism, Pairwise | Whole) and not isinstance(mechanism, CausalPairwise)
    assert mechanism.traits.non_causal == free
    assert not mechanism.traits.edges or isinstance(mechanism, Pairwise)


# Mechanisms whose positions can change alone. Bidirectional needs its rows in the order of their positions.
FREE = [name for name, each in MECHANISMS.items() if each.traits.non_causal and not isinstance(each, Bidirectional)]


@pytest.mark.parametrize("name", FREE)
def test_outputs_change_with_positions_if_that_is_declared(name):
    mechanism = SMALL[name].with_length(9)
    q, k, v, extra = inputs(mechanism, 9)
    q, k = np.abs(q), np.abs(k)  # no feature is zero
    attend = lambda j: np.asarray(mechanism.attend(q, k, v, j=jnp.asarray(j, jnp.int32), **extra))
    change = np.abs(attend(np.arange(9)) - attend([3, 0, 5, 8, 1, 4, 2, 7, 6])).max()
    assert (change > 1e-3) == mechanism.traits.position_dependent
    assert mechanism.traits.position_dependent or change < 1e-5


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_concrete_mechanism_cannot_be_subclassed(name):
    line = f"{type(MECHANISMS[name]).__name__} is final: subclass Pairwise, Recurrent or Whole, or hold it in a field"
    with pytest.raises(TypeError, match=f"^{line}$"):
        type("Mine", (type(MECHANISMS[name]),), {})


def test_the_contract_has_fifteen_names():
    assert len(public(Mechanism)) <= 15


@pytest.mark.parametrize("kind", [Mechanism, CheckedMechanism, Pairwise, Recurrent, Whole])
def test_a_kind_is_abstract(kind):
    with pytest.raises(TypeError, match="abstract"):
        kind()


def test_a_wrapper_passes_everything_on():
    templates = {"attend", "start", "extend", "causal"}  # they call the methods that are passed on
    assert public(Wrapper) >= (public(Mechanism) | public(CheckedMechanism)) - templates
    assert [field.name for field in fields(Wrapper)] == ["mechanism"]


@dataclass(frozen=True)
class Damped(Recurrent):
    """Linear attention with outputs scaled by an extra input per query: y_t = s_t Σ_{j ≤ t} (q_t·k_j) v_j."""

    @property
    def queries(self):
        return {"scale": ()}

    def update(self, memory, q, k, v, block, *, bias=None, scale):
        y = jnp.where(block.pairs, q @ k.T, 0) @ v + jnp.where(block.state_visible[:, None], q @ memory, 0)
        new = jnp.where(block.enters_state[:, None], k, 0).T @ v
        return scale[:, None] * y, jnp.where(block.state_survives, memory, 0) + new


@pytest.mark.usefixtures("x64")
def test_an_extra_input_per_query_reaches_every_form():
    mechanism = Damped()
    q, k, v, extra = jax.tree.map(jnp.asarray, inputs(mechanism, 7))
    assert extra["scale"].shape == (7,)
    expected = extra["scale"][:, None] * (jnp.tril(q @ k.T) @ v)
    for block in (None, 1, 3, 7):
        near(causal(mechanism, q, k, v, block=block, **extra), expected)
    near(weights(mechanism, q, k, Causal(), **extra) @ v, expected)
    keep = jnp.array([True, False, True, True, False, True, True])
    spoiled = {"scale": jnp.where(keep, extra["scale"], jnp.nan)}
    y = causal(mechanism, q, k, v, keep=keep, block=2, **spoiled)
    near(y[keep], extra["scale"][keep, None] * (jnp.tril(q[keep] @ k[keep].T) @ v[keep]))
    with pytest.raises(TypeError, match="is missing inputs scale"):
        causal(mechanism, q, k, v)
    with pytest.raises(ValueError, match=r"scale must have shape \(7,\), got \(6,\)"):
        causal(mechanism, q, k, v, scale=extra["scale"][:6])


def test_a_wrapper_around_rotated_features_keeps_the_wrapped_kind():
    assert isinstance(ShortConvolution(Linear()), Recurrent)
    assert not isinstance(ShortConvolution(Softmax()), Pairwise)


def test_a_module_projects_an_input_per_query_for_every_query_head():
    module = Attention(jax.random.key(0), 8, 4, Damped(), key_heads=2)
    assert module.queries["scale"].w.shape == (8, 4)
    x = jax.random.normal(jax.random.key(1), (5, 8))
    whole, _ = module.causal(x)
    first, state = module.extend(x[:2], module.start(5, x.dtype), jnp.arange(2))
    rest, _ = module.extend(x[2:], state, jnp.arange(2, 5))
    near(jnp.concatenate([first, rest]), whole, 1e-5)
    maps = with_maps(module).causal(x)[1]
    values = jnp.repeat(module.keys_values(x)["v"], 2, axis=1)
    near(module.o(jnp.einsum("hts,shv->thv", maps, values).reshape(5, 8)), whole, 1e-5)
