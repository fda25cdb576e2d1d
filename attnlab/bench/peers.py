"""Implementations of the same equations in other libraries, measured together with ours if they are installed.

A peer is never a dependency. The `peers` extra installs them, and each is imported only when it is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jax
import numpy as np

from attnlab.analysis.inputs import Inputs
from attnlab.analysis.measure import Program, compiled
from attnlab.bench.calls import FORWARD, with_gradients
from attnlab.bench.installed import installed_version
from attnlab.bench.peer_parity import jla
from attnlab.bench.peer_parity.comparison import PeerFunction
from attnlab.bench.peer_parity.subjects import MechanismSubject
from attnlab.mechanisms import Linear, Mechanism, Softmax
from attnlab.ops.feature import FEATURES


@dataclass(frozen=True)
class PeerCall:
    """What a peer computes in one measurement."""

    mechanism: Mechanism
    """The mechanism that it is compared with."""
    inputs: Inputs
    """q, k `[H T K]`, v `[H T V]` and the extra inputs by name, as `attnlab.bench.calls.inputs` draws them."""
    target: np.ndarray
    """The cotangent of the output, `[H T V]`."""
    mask: str
    """The mask, "full" or "causal"."""
    which: str
    """The pass, "forward" or "forward+backward"."""

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """q, k, v and the cotangent of the output."""
        return (*self.inputs[:3], self.target)


@dataclass(frozen=True)
class Peer:
    """The attention of another library."""

    package: str
    """The package that contains it."""
    masks: tuple[str, ...]
    """The masks that it supports."""
    same: Callable[[Mechanism], bool]
    """Returns whether it computes the equation of a mechanism."""
    prepare: Callable[[PeerCall], Program]
    """Makes the program of a measurement."""
    computes: Callable[[str], bool] = lambda platform: True
    """Returns whether it runs on a platform, given jax's name of it."""

    @property
    def here(self) -> bool:
        """Whether it is installed and runs on jax's platform."""
        return self.version is not None and self.computes(jax.default_backend())

    @property
    def version(self) -> str | None:
        """The installed version, or None."""
        return installed_version(self.package)


def available_peers(mechanism: Mechanism, mask: str) -> dict[str, Peer]:
    """Return the available peers that compute what `mechanism` computes under the mask."""
    return {name: peer for name, peer in PEERS.items() if mask in peer.masks and peer.same(mechanism) and peer.here}


def _softmax(mechanism: Mechanism) -> bool:
    return type(mechanism) is Softmax and mechanism == Softmax(block=mechanism.block, length=mechanism.length)


def _linear(mechanism: Mechanism) -> bool:
    return type(mechanism) is Linear and mechanism.normalise and mechanism.feature == FEATURES["elu+1"]


def _product(mechanism: Mechanism) -> bool:
    return type(mechanism) is Linear and not mechanism.normalise and mechanism.feature == FEATURES["identity"]


def _on_cpu(platform: str) -> bool:
    return platform == "cpu"


def _on_cpu_or_cuda(platform: str) -> bool:
    return platform == "cpu" or (platform == "gpu" and import_module("torch").cuda.is_available())


def _jax(call: PeerCall) -> Program:
    return _in_jax(call, lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=call.mask == "causal"))


def _tokamax(call: PeerCall) -> Program:
    attention = import_module("tokamax").dot_product_attention
    return _in_jax(call, lambda q, k, v: attention(q, k, v, is_causal=call.mask == "causal"))


def _chunked_form(mechanism: Mechanism) -> PeerFunction | None:
    """Return the chunked form of a mechanism in jax-linear-attention, or None if it has none."""
    computes = lambda ours: isinstance(ours, MechanismSubject) and ours.mechanism == mechanism
    return next((each for each in jla.chunked_forms() if computes(each.ours)), None)


def _jax_linear_attention(call: PeerCall) -> Program:
    peer = _chunked_form(call.mechanism)
    assert peer is not None
    extra, of_tokens = call.inputs[3], {*call.mechanism.tokens, *call.mechanism.queries}
    of_heads = {name: x for name, x in extra.items() if name not in of_tokens}
    names, run = [name for name in extra if name in of_tokens], peer.forms()["whole"]

    def attention(q, k, v, *more):
        tokens, heads = more[: len(names)], more[len(names) :]
        named = dict(zip(names, tokens, strict=True)) | dict(zip(of_heads, heads, strict=True))
        return run({"q": q, "k": k, "v": v} | named)

    return _in_jax(call, attention, [extra[name] for name in names], list(of_heads.values()))


def _in_jax(
    call: PeerCall, attention: Callable, tokens: Sequence[np.ndarray] = (), heads: Sequence[np.ndarray] = ()
) -> Program:
    """Compile a function in jax of arrays `[B T H …]`.

    Args:
        call: What to compute.
        attention: Called with q, k, v, the further arrays of tokens, and the arrays of heads.
        tokens: Further arrays of tokens `[H T …]`.
        heads: Further arrays of heads `[H …]`, which are passed as they are.
    """
    # The conversion of the layout is not timed.
    q, k, v, target, *rest = (np.ascontiguousarray(x.swapaxes(0, 1)[None]) for x in (*call.arrays, *tokens))
    forward, given = call.which == FORWARD, (q, k, v, *rest, *heads)
    program = compiled(attention, *given) if forward else compiled(with_gradients(attention), target, *given)
    first = lambda answer: np.asarray(answer if forward else answer[0])[0].swapaxes(0, 1)
    return Program(
        program.run,
        lambda: first(program.answer()),
        program.compile_seconds,
        program.memory,
        program.moved,
        program.flops,
    )


def _torch(call: PeerCall) -> Program:
    functional = import_module("torch.nn.functional")
    attention = lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=call.mask == "causal")
    return _in_torch(attention, call)


def _fast_transformers(call: PeerCall) -> Program:
    """Run its C++ causal product, with the feature map and the normalizer (Katharopoulos et al. 2020)."""
    torch, library = import_module("torch"), import_module("fast_transformers.causal_product")
    feature = lambda x: torch.nn.functional.elu(x) + 1

    def attention(q, k, v):
        q, k = feature(q), feature(k)
        total = (q * k.cumsum(2)).sum(-1, keepdim=True)
        return library.causal_dot_product(q, k, v) / total

    return _in_torch(attention, call)


def _causal_product(call: PeerCall) -> Program:
    """Run only its C++ causal product."""
    return _in_torch(import_module("fast_transformers.causal_product").causal_dot_product, call)


def _in_torch(attention: Callable, call: PeerCall) -> Program:
    torch: Any = import_module("torch")
    arrays, which = call.arrays, call.which
    on_gpu = jax.default_backend() == "gpu"
    *given, target = (torch.from_numpy(x[None].copy()).to("cuda" if on_gpu else "cpu") for x in arrays)
    given = [x.requires_grad_(which != FORWARD) for x in given]

    def run():
        with torch.set_grad_enabled(which != FORWARD):
            y = attention(*given)
        if which != FORWARD:
            torch.autograd.grad(y, given, target)
        if on_gpu:
            torch.cuda.synchronize()
        return y

    return Program(run, lambda: run().detach().cpu().numpy()[0])


PEERS: dict[str, Peer] = {
    "torch": Peer("torch", ("full", "causal"), _softmax, _torch, _on_cpu_or_cuda),
    "jax.nn": Peer("jax", ("full", "causal"), _softmax, _jax),
    "tokamax": Peer("tokamax", ("full", "causal"), _softmax, _tokamax),
    "jax-linear-attention": Peer(
        jla.PACKAGE, ("causal",), lambda each: _chunked_form(each) is not None, _jax_linear_attention
    ),
    "fast-transformers": Peer("pytorch-fast-transformers", ("causal",), _linear, _fast_transformers, _on_cpu),
    "causal product": Peer("pytorch-fast-transformers", ("causal",), _product, _causal_product, _on_cpu),
}
