from types import SimpleNamespace

import jax
import numpy as np
import pytest

from attnlab.bench import peers
from attnlab.bench.calls import BOTH, FORWARD, inputs, target
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.ops.feature import FEATURES
from attnlab.ops.score import dot
from tests.bench.stand_ins import attention, peer


def test_a_peer_is_paired_with_mechanisms_of_the_same_equation():
    same = lambda mechanism: {name for name, each in peers.PEERS.items() if each.same(mechanism)}
    assert same(Softmax()) == same(MECHANISMS["softmax-blockwise"]) == {"torch", "jax.nn", "tokamax"}
    assert same(Linear()) == {"fast-transformers"}
    assert same(Linear(feature=FEATURES["identity"], normalise=False)) == {"causal product"}
    assert same(Softmax(softcap=50.0)) == same(MECHANISMS["softmax-sink"]) == set()
    assert same(Softmax(score=dot)) == same(Linear(normalise=False)) == set()
    assert same(MECHANISMS["delta"]) == same(MECHANISMS["gated-linear"]) == {"jax-linear-attention"}


def test_a_peer_that_is_not_installed_is_left_out(monkeypatch):
    stand_ins = {"here": peer(), "not here": peer("no-such-package")}
    monkeypatch.setattr(peers, "PEERS", stand_ins)
    assert list(peers.available_peers(Softmax(), "full")) == ["here"]
    assert peers.available_peers(Linear(), "full") == {}
    assert stand_ins["not here"].version is None


@pytest.mark.parametrize(("platform", "cuda", "expected"), [
    ("cpu", False, {"torch", "jax.nn", "tokamax"}),
    ("gpu", True, {"torch", "jax.nn", "tokamax"}),
    ("gpu", False, {"jax.nn", "tokamax"}),
    ("tpu", True, {"jax.nn", "tokamax"}),
])  # fmt: skip
def test_a_peer_on_another_device_is_left_out(platform, cuda, expected, monkeypatch):
    monkeypatch.setattr(peers, "installed_version", lambda package: "1.0")
    monkeypatch.setattr(
        peers, "import_module", lambda name: SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: cuda))
    )
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    assert set(peers.available_peers(Softmax(), "full")) == expected
    assert set(peers.available_peers(Linear(), "causal")) == ({"fast-transformers"} if platform == "cpu" else set())


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("which", [FORWARD, BOTH])
def test_jax_nn(mask, which):
    q, k, v, _ = given = inputs(Softmax(), 9, 3, 4)
    program = peers.PEERS["jax.nn"].prepare(peers.PeerCall(Softmax(), given, target(9, 3, 4), mask, which))
    program.run()
    np.testing.assert_allclose(program.answer(), attention(q, k, v, mask == "causal"), atol=1e-5)
    assert program.memory > 0


@pytest.mark.parametrize("which", [FORWARD, BOTH])
@pytest.mark.parametrize(
    ("name", "module", "mechanism"),
    [
        ("torch", "torch", Softmax()),
        ("fast-transformers", "fast_transformers", Linear()),
        ("causal product", "fast_transformers", Linear(feature=FEATURES["identity"], normalise=False)),
        ("tokamax", "tokamax", Softmax()),
        *(("jax-linear-attention", "jla", MECHANISMS[name]) for name in ("retention", "kda", "mlstm", "rwkv7")),
    ],
)
def test_installed_peers_agree_with_attnlab(name, module, mechanism, which):
    pytest.importorskip(module)
    from attnlab.bench.calls import prepare

    call = peers.PeerCall(mechanism, inputs(mechanism, 70, 2, 8), target(70, 2, 8), "causal", which)
    theirs = peers.PEERS[name].prepare(call)
    theirs.run()
    ours = prepare(mechanism, "causal", FORWARD, 70, 2, 8)
    np.testing.assert_allclose(theirs.answer(), ours.answer(), atol=1e-4)
