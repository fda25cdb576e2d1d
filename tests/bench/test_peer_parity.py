"""Checks comparisons with other libraries: with stand-ins, and with the real libraries where they are installed."""

import json
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from attnlab.bench.peer_parity import functions, subjects
from attnlab.bench.peer_parity.comparison import FORMS, KnownDifference, PeerFunction, PeerResult, compare, difference
from attnlab.bench.peer_parity.evaluation import evaluate_in_jax, evaluate_in_torch
from attnlab.bench.peer_parity.layers import ModuleSubject
from attnlab.bench.peer_parity.subjects import subject
from attnlab.bench.peer_parity.table import peer_tables, record, verdict
from attnlab.cli.main import main

QUICK = functions.FUNCTIONS[0]  # of jax.nn, which is always installed
SMALL = {"B": 2, "T": 7, "H": 2, "K": 4, "V": 4}
SOFTMAX = subject("softmax", **SMALL)
FORGETTING = subject("forgetting", **SMALL)


def attention(named, wrong=0.0):
    """Returns causal softmax attention of named arrays [B T H K] in numpy, one example and head at a time."""
    y = np.zeros_like(named["v"])
    for b, h in np.ndindex(y.shape[0], y.shape[2]):
        for t in range(y.shape[1]):
            seen = [s for s in range(t + 1) if _together(named, b, t, s)]
            scores = np.array([named["q"][b, t, h] @ named["k"][b, s, h] for s in seen]) / np.sqrt(y.shape[-1])
            shares = np.exp(scores - scores.max(initial=-np.inf)) if seen else scores
            y[b, t, h] = (shares / shares.sum()) @ named["v"][b, seen, h] + wrong if seen else 0
    return y


def _together(named, b, t, s):
    """Returns whether query t may see key s: they are in the same segment, and neither is padding."""
    segment, keep = named.get("segment"), named.get("keep")
    return (segment is None or segment[b, t] == segment[b, s]) and (keep is None or (keep[b, t] and keep[b, s]))


def finite_differences(run, named, target):
    """Returns the outputs, and the gradients by central differences."""
    gradients = {}
    for name in ("q", "k", "v"):
        slopes = np.zeros_like(named[name])
        for place in np.ndindex(slopes.shape):
            ends = []
            for step in (1e-4, -1e-4):
                moved = named[name].copy()
                moved[place] += step
                ends.append(np.sum(target * run(named | {name: moved})))
            slopes[place] = (ends[0] - ends[1]) / 2e-4
        gradients[name] = slopes
    return run(named), gradients


def in_numpy(run, arrays, target):
    """Returns the outputs of a function in numpy, with gradients by finite differences if there is a target."""
    return (run(arrays), {}) if target is None else finite_differences(run, arrays, target)


def peer(package="numpy", wrong=0.0, forms=("whole", "steps"), ours=SOFTMAX, **options):
    """Returns a peer of softmax attention that needs only numpy. `wrong` is added to its outputs."""
    run = lambda named: attention(named, wrong)
    made = lambda: dict.fromkeys(forms, run)
    return PeerFunction(ours, package, "attention", made, in_numpy, "float64", **options)


def in_jax(run, ours=SOFTMAX, forms=("whole",), **options):
    """Returns a peer in jax."""
    return PeerFunction(ours, "jax", "attention", lambda: dict.fromkeys(forms, run), evaluate_in_jax, **options)


def shown(*results, width=140):
    console = Console(width=width, record=True, file=SimpleNamespace(write=lambda _: None, flush=lambda: None))
    for table in peer_tables(results):
        console.print(table)
    return console.export_text()


def test_our_forms_are_those_of_a_loop_in_numpy():
    small = subject("softmax", B=2, T=5, H=2, K=2, V=3)
    for form in ("whole", "packed", "padded", "steps"):
        named = small.inputs(form)
        y, _ = evaluate_in_jax(small.forms()[form], named, None)
        np.testing.assert_allclose(y, attention_of(named), atol=1e-12)
    assert {name: x.shape for name, x in small.inputs("packed").items()} == {
        "q": (2, 5, 2, 2), "k": (2, 5, 2, 2), "v": (2, 5, 2, 3), "segment": (2, 5)
    }  # fmt: skip
    keep = small.inputs("padded")["keep"]
    assert keep[0].all()
    assert not keep[1].all()


def attention_of(named):
    """Returns `attention` with scores divided by √K, from the width K of keys, instead of √V."""
    wide = np.sqrt(named["v"].shape[-1] / named["q"].shape[-1])
    return attention({**named, "q": named["q"] * wide})


def test_gradients_are_compared_too():
    (result,) = compare([peer(forms=("whole",), ours=subject("softmax", B=1, T=4, H=1, K=2, V=2))])
    assert set(result.errors["whole"]) == {"output", "q", "k", "v"}
    assert result.errors["whole"]["output"] < 1e-15
    assert max(result.errors["whole"].values()) < 1e-7
    stopped = in_jax(lambda x: jax.lax.stop_gradient(_plain(x)) + 0 * x["q"] + 0 * x["k"])
    (result,) = compare([stopped])
    assert result.errors["whole"]["output"] < 1e-6
    assert result.errors["whole"]["v"] == 1
    assert result.failure.startswith("softmax and jax attention: whole, gradient of ")


def _plain(x):
    """Returns causal softmax attention by jax.nn."""
    return jax.nn.dot_product_attention(x["q"], x["k"], x["v"], is_causal=True)


def test_a_peer_that_agrees_is_ok_and_one_that_does_not_is_named():
    told = []
    good, bad, broken = compare(
        [in_jax(_plain), in_jax(lambda x: _plain(x) + 1e-3), in_jax(lambda x: x["z"])], told.append
    )
    assert (good.verdict, good.failure) == ("ok", "")
    assert bad.verdict == "✗"
    assert bad.failure.startswith("softmax and jax attention: whole, output ")
    assert bad.failure.endswith(", limit 1e-05")
    assert broken.failure == "softmax and jax attention: KeyError: 'z'"
    assert told[0].startswith("softmax and attention: ok (1 of 3, ")
    assert verdict([good]) == ""
    assert verdict([good, bad, broken]).startswith("2 of 3 comparisons fail: softmax and jax attention: whole")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_a_number_breaks_every_limit(value):
    known = peer(known_differences={"whole": KnownDifference("off", 1e-3)})
    assert PeerResult(known, {"whole": {"output": value}}).verdict == "✗"
    assert np.isnan(difference(np.array([np.nan]), np.array([1.0])))


def test_shapes_that_differ_are_said():
    with pytest.raises(ValueError, match=r"theirs \(2,\), ours \(3,\)"):
        difference(np.zeros(2), np.zeros(3))


def test_a_known_finding_is_marked_but_not_one_that_has_grown_or_gone():
    known = peer(known_differences={"whole": KnownDifference("adds a thousandth", 2e-3)})
    result = lambda **errors: PeerResult(known, {form: {"output": value} for form, value in errors.items()})
    assert (result(whole=1e-3).verdict, result(whole=1e-3).failure) == ("known", "")
    assert result(whole=0.0).verdict == "not reproduced"
    assert result(whole=3e-3).failure.endswith("output 3.0e-03, limit 1e-10, of which 2e-03 are explained")
    assert result(whole=1e-3, packed=1e-3).failure == "softmax and numpy attention: packed, output 1.0e-03, limit 1e-10"
    text = shown(result(whole=1e-3))
    assert "✗1e-03" in text
    assert "known: adds a thousandth: softmax with attention (whole)" in text
    assert PeerResult(known).failure == "softmax and numpy attention: nothing to compare"


def test_extreme_gates_are_those_of_mechanisms_with_gates():
    assert "extreme" not in SOFTMAX.forms()
    plain, extreme = FORGETTING.inputs("whole"), FORGETTING.inputs("extreme")
    np.testing.assert_array_equal(extreme["forget"], 20 * plain["forget"])
    np.testing.assert_array_equal(extreme["shift"], plain["shift"])
    naive = lambda x: _forgetting(x, jnp.exp(jnp.cumsum(jax.nn.log_sigmoid(x["forget"] + x["shift"]), axis=1)))
    (result,) = compare([in_jax(naive, FORGETTING)])
    assert result.exception == ""
    assert result.errors["whole"]["output"] < 1e-5
    assert result.errors["extreme"]["output"] > 1e-3  # products of gates underflow to zero
    assert result.failure.startswith("forgetting and jax attention: extreme, ")


def _forgetting(x, products):
    """Returns forgetting attention, computed from products of gates [B T H]."""
    scores = jnp.einsum("bthk,bshk->bhts", x["q"], x["k"]) / 2
    decay = jnp.moveaxis(products, 2, 1)
    shares = jnp.tril(jnp.exp(scores) * decay[..., :, None] / decay[..., None, :])
    return jnp.einsum("bhts,bshv->bthv", shares / shares.sum(-1, keepdims=True), x["v"])


def test_the_table_has_a_row_for_each_function_and_a_table_for_each_package():
    rows = {form: {"output": 1e-12, "q": 3e-11} for form in FORMS[:-1]} | {"steps": {"output": 2e-12}}
    text = shown(PeerResult(peer(), rows), PeerResult(in_jax(_plain), {"whole": {"output": 1e-2, "q": 0.0}}))
    lines = {line.split()[1]: line.split() for line in text.splitlines() if line.startswith("softmax")}
    assert text.count(f"numpy {np.__version__}") == text.count(f"jax {jax.__version__}") == 1
    assert max(map(len, text.splitlines())) <= 140
    assert lines["attention"][2:] == ["1e-5", "✗1e-02", "0e+00", *["–"] * 7, "✗"]
    first = next(line.split() for line in text.splitlines() if line.startswith("softmax"))
    assert first == ["softmax", "attention", "1e-10", *["1e-12", "3e-11"] * 4, "2e-12", "ok"]


def test_for_json():
    result = PeerResult(
        peer(known_differences={"whole": KnownDifference("off", 1.0)}), {"whole": {"output": 0.5}}, seconds=1.234
    )
    (row,) = record([result])["comparisons"]
    assert row["errors"] == {"whole": {"output": 0.5}}
    assert row["known_differences"] == {"whole": {"text": "off", "size": 1.0}}
    assert (row["ours"], row["package"], row["version"]) == ("softmax", "numpy", np.__version__)
    assert record([result])["passed"] is True


@pytest.fixture
def known(monkeypatch):
    """Returns a function that replaces the known peers."""
    return lambda *given: monkeypatch.setattr(functions, "FUNCTIONS", given)


def test_on_the_command_line(known, capfd, tmp_path):
    known(in_jax(_plain), in_jax(lambda x: 2 * _plain(x), FORGETTING), peer("no-such-package"))
    file = tmp_path / "peers.json"
    assert main(["parity", "--peers", "softmax", "--json", str(file)]) == 0
    told = capfd.readouterr()
    assert "attnlab: skipped, not installed: no-such-package; pip install .[parity]" in told.err
    assert "softmax" in told.out
    assert "forgetting" not in told.out
    assert json.loads(file.read_text())["passed"] is True
    assert main(["parity", "--peers"]) == 5
    assert "attnlab: error: 1 of 2 comparisons fail: forgetting and jax attention: " in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--peers"], "nothing to compare, not installed: no-such-package, nor-this; pip install .[parity]"),
        (["--peers", "linear"], "no other library is known to compute 'linear'; compared are: softmax, forgetting"),
        (["--peers", "sofmax"], "mechanism='sofmax' is not known; nearest: 'softmax'"),
        (["--peers", "--length", "64"], "--length 64 does not apply to --peers"),
    ],
)
def test_what_cannot_be_compared_gives_one_line(known, capfd, arguments, words):
    known(peer("nor-this"), peer("no-such-package", ours=FORGETTING))
    assert main(["parity", *arguments]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"attnlab: error: {words}"), told.err
    assert told.err.count("\n") == 1


def test_in_torch():
    torch = pytest.importorskip("torch")
    arrays = {"x": np.array([1.0, 2.0]), "unused": np.ones(2), "keep": np.array([True, False])}
    run = lambda named: torch.where(named["keep"], named["x"] ** 2, named["x"])
    y, gradients = evaluate_in_torch(run, arrays, np.array([1.0, 3.0]))
    np.testing.assert_array_equal(y, [1, 2])
    np.testing.assert_array_equal(gradients["x"], [2, 3])
    np.testing.assert_array_equal(gradients["unused"], [0, 0])
    assert evaluate_in_torch(run, arrays, None)[1] == {}


def test_every_record_is_of_a_mechanism_or_a_module_and_differs_from_the_others():
    for each in functions.FUNCTIONS:
        assert each.ours.name in subjects.MECHANISMS or isinstance(each.ours, ModuleSubject)
        assert set(each.known_differences) <= {*each.ours.forms(), "extreme"} & set(FORMS)
    different = {(str(each.ours), each.package, each.function, each.dtype) for each in functions.FUNCTIONS}
    assert len(different) == len(functions.FUNCTIONS)


def test_a_segment_that_has_the_id_of_an_earlier_one_stays_a_segment_of_its_own():
    named = subject("forgetting", B=1, T=6, H=1, K=2, V=2, reuse=True).inputs("packed")
    np.testing.assert_array_equal(named["segment"], [[0, 0, 1, 1, 0, 0]])


@pytest.mark.parametrize(
    "each",
    [pytest.param(each, marks=[] if each is QUICK else pytest.mark.slow) for each in functions.FUNCTIONS],
    ids=lambda each: f"{each.ours.name}-{each.function}-{each.dtype}",
)
def test_ours_agree_with_those_installed(each):
    if each.version is None:
        pytest.skip(f"{each.package} is not installed")
    (result,) = compare([each])
    assert result.failure == ""
