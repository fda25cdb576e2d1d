"""Implementations of the same equations in other libraries, measured together with ours if they are installed.

A peer is never a dependency. The `peers` extra installs them, and each is imported only when it is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jax
import numpy as np

from attnlab.analysis.measure import Program, compiled
from attnlab.bench.calls import FORWARD, with_gradients
from attnlab.bench.installed import installed_version
from attnlab.mechanisms import Linear, Mechanism, Softmax
from attnlab.ops.feature import FEATURES


@dataclass(frozen=True)
class Peer:
    """The attention of another library."""

    package: str
    """The package that contains it."""
    masks: tuple[str, ...]
    """The masks that it supports."""
    same: Callable[[Mechanism], bool]
    """Returns whether it computes the equation of a mechanism."""
    prepare: Callable[[tuple[np.ndarray, ...], str, str], Program]
    """Makes a program: (arrays, mask, which) -> Program.

    The arrays are q, k, v and the cotangent of the output, each `[H T K]`.
    """
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


def _jax(arrays: tuple[np.ndarray, ...], mask: str, which: str) -> Program:
    # The conversion to its layout, [B T H K], is not timed.
    q, k, v, target = (np.ascontiguousarray(x.swapaxes(0, 1)[None]) for x in arrays)
    attention = lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=mask == "causal")
    program = compiled(attention, q, k, v) if which == FORWARD else compiled(with_gradients(attention), target, q, k, v)
    heads = lambda answer: np.asarray(answer if which == FORWARD else answer[0])[0].swapaxes(0, 1)
    return Program(
        program.run,
        lambda: heads(program.answer()),
        program.compile_seconds,
        program.memory,
        program.moved,
        program.flops,
    )


def _torch(arrays: tuple[np.ndarray, ...], mask: str, which: str) -> Program:
    functional = import_module("torch.nn.functional")
    attention = lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=mask == "causal")
    return _in_torch(attention, arrays, which)


def _fast_transformers(arrays: tuple[np.ndarray, ...], mask: str, which: str) -> Program:
    """Run its C++ causal product, with the feature map and the normalizer (Katharopoulos et al. 2020)."""
    torch, library = import_module("torch"), import_module("fast_transformers.causal_product")
    feature = lambda x: torch.nn.functional.elu(x) + 1

    def attention(q, k, v):
        q, k = feature(q), feature(k)
        total = (q * k.cumsum(2)).sum(-1, keepdim=True)
        return library.causal_dot_product(q, k, v) / total

    return _in_torch(attention, arrays, which)


def _causal_product(arrays: tuple[np.ndarray, ...], mask: str, which: str) -> Program:
    """Run only its C++ causal product."""
    return _in_torch(import_module("fast_transformers.causal_product").causal_dot_product, arrays, which)


def _in_torch(attention: Callable, arrays: tuple[np.ndarray, ...], which: str) -> Program:
    torch: Any = import_module("torch")
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
    "fast-transformers": Peer("pytorch-fast-transformers", ("causal",), _linear, _fast_transformers, _on_cpu),
    "causal product": Peer("pytorch-fast-transformers", ("causal",), _product, _causal_product, _on_cpu),
}
