"""Functions of jax-linear-attention: its token-by-token references and its chunked forms, in float32.

It needs Python 3.12 and jax 0.11.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from operator import attrgetter
from types import ModuleType

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from attnlab.bench.peer_parity.comparison import DIGITS, FORMS, KnownDifference, PeerFunction
from attnlab.bench.peer_parity.evaluation import evaluate_in_jax
from attnlab.bench.peer_parity.subjects import MLSTM, MechanismSubject, subject
from attnlab.mechanisms.moba import BlockMixture
from attnlab.mechanisms.nsa import NativeSparse
from attnlab.mechanisms.path import Path

PACKAGE = "jax-linear-attention"
CHUNKED = ("ops.chunked.", "ops.rwkv7.rwkv7_chunked", "ops.log_linear.log_linear_simple_gla_chunked", 'impl="chunked"')
"""Parts of the names of its chunked forms."""
Named = Mapping[str, Array]
Arguments = Callable[[Named], tuple[Array, ...]]
REUSED = KnownDifference(
    "a segment that has the id of an earlier one sees its keys, other than in the package's other functions; segments "
    "0, 1, 0, values 1, 10, 100 and open gates: the third output is 50.5 instead of 100",
    10.0,
)
SUMS = KnownDifference(
    "log gates are summed over the whole sequence in float32, and differences of these sums lose digits as it grows; "
    "the gradient of the shift is wrong by 7e-5 at 200 tokens",
    1e-3,
)


def _function(
    ours: MechanismSubject,
    function: str,
    arguments: Arguments,
    *,
    shape: Callable[[Named], tuple[int, ...]] | None = None,
    recurrent: bool = False,
    known_differences: Mapping[str, KnownDifference] | None = None,
    options: Mapping[str, bool | float | str] | None = None,
    label: str | None = None,
) -> PeerFunction:
    """Return the record of one function.

    Args:
        ours: The mechanism.
        function: Its name, from `jla` on.
        arguments: Its positional arguments, given our named arrays.
        shape: The shape of our output, if its output has another one.
        recurrent: Whether it returns a state and continues from one.
        known_differences: Known differences, by form.
        options: Its further arguments, by name.
        label: The name that tables show. Default: `function`.
    """

    def call(named: Named, **more) -> tuple[Array, PyTree]:
        result = attrgetter(function)(_library())(*arguments(named), **(options or {}), **more)
        y, state = result if isinstance(result, tuple) else (result, None)
        return y if shape is None else y.reshape(shape(named)), state

    def forms() -> dict[str, Callable]:
        # There is no argument for padding, which has to be a segment of its own.
        found = {
            "whole": lambda named: call(named)[0],
            "packed": lambda named: call(named, segment_ids=named["segment"])[0],
        }
        return found | ({"steps": partial(_by_token, ours, call)} if recurrent else {})

    return PeerFunction(
        ours, PACKAGE, label or function, forms, evaluate_in_jax, known_differences=known_differences or {}
    )


def _library() -> ModuleType:
    """Import the package with all modules that are used here."""
    import_module("jla.ops")
    import_module("jla.ops.log_linear")
    import_module("jla.ops.moba")
    import_module("jla.ops.path_attention")
    import_module("jla.ops.sparse_attention")
    import_module("jla.layers.forgetting_attention")
    import_module("jla.layers.ssm")
    return import_module("jla")


def _by_token(ours: MechanismSubject, call: Callable, named: Named) -> Array:
    """Return the outputs of one token after another."""
    names = ("q", "k", "v", *ours.mechanism.tokens, *ours.mechanism.queries)
    tokens = {name: jnp.moveaxis(named[name], 1, 0)[:, :, None] for name in names}
    rest = {name: x for name, x in named.items() if name not in names}

    def step(state: PyTree, here: Named) -> tuple[PyTree, Array]:
        y, state = call({**rest, **here}, initial_state=state, output_final_state=True)
        return state, y[:, 0]

    state, first = step(None, {name: x[0] for name, x in tokens.items()})
    _, y = jax.lax.scan(step, state, {name: x[1:] for name, x in tokens.items()})
    return jnp.moveaxis(jnp.concatenate([first[None], y]), 0, 1)


def _both(
    ours: MechanismSubject,
    name: str,
    arguments: Arguments,
    chunk: int,
    shape: Callable[[Named], tuple[int, ...]] | None = None,
    digits: bool = False,
    **options: bool | float,
) -> Iterator[PeerFunction]:
    """Yield the records of a reference and of its chunked form, which may lose digits."""
    more = {"shape": shape, "recurrent": True}
    yield _function(ours, f"ops.reference.{name}", arguments, options=options, **more)
    known, chunks = {"extreme": DIGITS} if digits else {}, {**options, "chunk_size": chunk}
    yield _function(ours, f"ops.chunked.{name}", arguments, options=chunks, known_differences=known, **more)


def _constant(x: Named) -> Array:
    """Return the logarithm of a decay that is the same for all tokens [B T H]."""
    return jnp.broadcast_to(-x["rate"], x["q"].shape[:3])


def _decay(x: Named) -> Array:
    """Return −e^rate softplus(dt + shift) of one gate per token [B T H] or per channel [B T H K]."""
    rate = x["rate"] if x["dt"].ndim == 3 else x["rate"][:, None]
    return -jnp.exp(rate) * jax.nn.softplus(x["dt"] + x["shift"])


def _written(x: Named) -> Array:
    """Return values times the step, as Mamba-2 writes them."""
    return jax.nn.softplus(x["dt"] + x["shift"])[..., None] * x["v"]


def _mamba(x: Named) -> tuple[Array, ...]:
    """Return C, B, the inputs of all heads as channels, their steps, and A."""
    B, T, H, V = x["v"].shape
    steps = jax.nn.softplus(x["dt"] + x["shift"])
    rates = -jnp.exp(x["rate"]).swapaxes(1, 2).reshape(H * V, -1)
    return x["q"], x["k"], x["v"].reshape(B, T, H * V), steps.reshape(B, T, H * V), rates


def _mamba3(x: Named) -> tuple[Array, ...]:
    """Return C, B, the inputs, their A Δ, Δ and λ, the biases, and the angles before their functions."""
    rates = jnp.where(x["decay"] > 0, x["decay"] + 1, 1 / (1 + jnp.abs(x["decay"])))
    steps = jax.nn.softplus(x["dt"] + x["shift"])
    decays = -jnp.maximum(rates, 1e-4) * steps
    return x["q"], x["k"], x["v"], decays, steps, x["trapezoid"], x["q_bias"], x["k_bias"], x["angle"]


def _writes(x: Named, name: str, more: str) -> Array:
    """Return what the writes of all tokens write, one after another [B T·n H …]."""
    every = jnp.concatenate([x[name][:, :, None], jnp.moveaxis(x[more], 3, 2)], axis=2)
    return every.reshape(every.shape[0], -1, *every.shape[3:])


def _product(x: Named) -> tuple[Array, ...]:
    beta = 2 * jax.nn.sigmoid(jnp.moveaxis(x["beta"], 3, 2))
    beta = beta.reshape(beta.shape[0], -1, beta.shape[3])
    return x["q"], _writes(x, "k", "more_keys"), _writes(x, "v", "more_values"), _decay(x), beta


def _rwkv7(x: Named) -> tuple[Array, ...]:
    strength, removal = jax.nn.sigmoid(x["strength"]), x["k"] * x["removal"]
    key = removal * jax.lax.rsqrt(jnp.sum(removal**2, axis=-1, keepdims=True) + 1e-6)
    written = x["k"] * (1 + (strength - 1) * x["replacement"])
    return x["q"], written, x["v"], -jnp.exp(-0.5) * jax.nn.sigmoid(x["decay"]), -key, strength * key


def _path(x: Named) -> tuple[Array, ...]:
    unit = x["path"] * jax.lax.rsqrt(jnp.sum(x["path"] ** 2, axis=-1, keepdims=True) + 1e-6)
    return x["q"], x["k"], x["v"], unit, 2 * jax.nn.sigmoid(x["beta"])


def chunked_forms() -> list[PeerFunction]:
    """Return the records of the chunked forms, its fastest ones on a CPU, with chunks of 64 tokens."""
    return [each for each in functions(chunk=64) if any(name in each.function for name in CHUNKED)]


def functions(chunk: int = 16) -> Iterator[PeerFunction]:
    """Yield all records.

    Args:
        chunk: Number of tokens of a chunk of the chunked forms. By default, a short sequence has several.
    """
    both = partial(_both, chunk=chunk)
    start = lambda x: (x["q"], x["k"], x["v"])
    beta = lambda x: jax.nn.sigmoid(x["beta"])
    yield from both(subject("retention"), "simple_gla", lambda x: (*start(x), _constant(x)))
    yield from both(subject("lightning"), "simple_gla", lambda x: (*start(x), _constant(x)), scale=1.0)
    ssd = lambda x: (x["q"], x["k"], _written(x), _decay(x))
    yield from both(subject("ssd"), "simple_gla", ssd, digits=True, scale=1.0)
    gla = lambda x: (*start(x), jax.nn.log_sigmoid(x["gate"]) / 16)
    yield from both(subject("gated-linear"), "gla", gla)
    yield from both(subject("delta"), "delta_rule", lambda x: (*start(x), beta(x)), use_qk_l2norm=True)
    gated = lambda x: (*start(x), _decay(x), beta(x))
    yield from both(subject("gated-delta"), "gated_delta_rule", gated, digits=True, use_qk_l2norm=True)
    yield from both(subject("kda"), "kda", gated, digits=True, use_qk_l2norm=True)
    separate = lambda x: (*start(x), _decay(x), jax.nn.sigmoid(x["erase"]), jax.nn.sigmoid(x["write"]))
    yield from both(subject("gated-delta-2"), "gdn2", separate, digits=True, use_qk_l2norm=True)
    yield from both(subject("delta-product"), "gated_delta_product", _product, digits=True, use_qk_l2norm=True)
    forget = lambda x: jax.nn.log_sigmoid(x["forget"] + x["forget_shift"])
    mlstm = lambda x: (*start(x), forget(x), x["write"] + x["write_shift"])
    yield from both(MLSTM, "mlstm", mlstm, eps=0.0)
    yield from both(subject("mamba"), "mamba1", _mamba, shape=lambda x: x["v"].shape)
    # Large steps are left out: they make angles of many turns, whose rounding in float32 is not the library's.
    three = subject("mamba3", gates=("decay", "trapezoid", "angle"))
    for form in ("reference", "chunked"):
        place, options = "layers.ssm.mamba3_siso", {"impl": form, "chunk_size": chunk}
        label = f'{place}(impl="{form}")'
        yield _function(three, place, _mamba3, recurrent=True, options=options, label=label)
    hgrn = lambda x: (jax.nn.silu(x["q"]), jax.nn.sigmoid(-x["k"]), x["v"], jax.nn.log_sigmoid(x["k"]))
    yield from both(subject("hgrn2"), "gla", hgrn, scale=1.0)
    seven, tree, path = subject("rwkv7"), subject("log-linear"), subject("path", Path(block=chunk))
    levels = lambda x: (*ssd(x), jax.nn.softplus(x["levels"]))
    lost = {"extreme": DIGITS}
    for form, name, more in (("reference", "rwkv7", {}), ("chunked", "rwkv7_chunked", {"chunk_size": chunk})):
        yield _function(seven, f"ops.rwkv7.{name}", _rwkv7, recurrent=True, options=more)
        known = lost if more else {}
        place = f"ops.log_linear.log_linear_simple_gla_{form}"
        yield _function(tree, place, levels, options={"scale": 1.0} | more, known_differences=known)
        yield _function(path, f"ops.path_attention.path_attention_{form}", _path, options=more)
    fox = lambda x: (*start(x), jax.nn.log_sigmoid(x["forget"] + x["shift"]))
    place = "layers.forgetting_attention.forgetting_attention"
    yield _function(subject("forgetting", gates=()), place, fox)
    yield _function(subject("forgetting", T=200), place, fox, known_differences=dict.fromkeys(FORMS[:3], SUMS))
    # With gates that are nearly open, since others forget the first segment before the third.
    apart = subject("forgetting", reuse=True, gates=(), offsets={"shift": 10})
    yield _function(apart, place, fox, known_differences={"packed": REUSED})
    moba = subject("moba", BlockMixture(size=8, picks=3), V=8)
    yield _function(moba, "ops.moba.moba_attention", start, options={"block_size": 8, "top_k": 3})
    nsa = subject("nsa", NativeSparse(size=8, picks=4, window=16))
    gates = lambda x: (*start(x), *jnp.moveaxis(jax.nn.sigmoid(x["gates"]), -1, 0))
    blocks = {"block_size": 8, "block_count": 4, "window_size": 16}
    yield _function(nsa, "ops.sparse_attention.nsa", gates, options=blocks)


FUNCTIONS = tuple(functions())
