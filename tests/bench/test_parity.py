import json
from types import SimpleNamespace

import jax
import pytest
from rich.console import Console

import attnlab
from attnlab.bench import parity
from attnlab.bench.parity import ParityResult
from attnlab.bench.parity_table import parity_table
from attnlab.cli.main import main
from tests.analysis.examples import Broken, Late, Mean, Mute, Narrow, Sum

NAN = float("nan")
FORMS = {
    "causal": {"attend": 0.0, "block 7": 4e-16},
    "extend": {"in 3 parts": 0.0},
    "padding": {"attend, after": None, "block 7, before": 1e-16},
    "vmap/jit": {"attend, vmap": None, "causal, vmap": 0.0},
}
ERRORS = {
    "float32": {64: {"full": None, "causal": 1.2e-7}, 256: {"full": None, "causal": 3.4e-7}},
    "bfloat16": {64: {"full": None, "causal": 2e-3}, 256: {"full": None, "causal": 3e-3}},
    "float16": {64: {"full": None, "causal": 2e-4}, 256: {"full": None, "causal": 3e-4}},
}
GOOD = ParityResult("good", FORMS, ERRORS, 1.5)


def shown(*results, lengths=(64, 256), width=100):
    console = Console(width=width, record=True, file=SimpleNamespace(write=lambda _: None, flush=lambda: None))
    console.print(parity_table(results, lengths))
    return console.export_text()


def changed(**errors):
    return ParityResult("bad", FORMS, ERRORS | errors)


def test_errors_within_all_limits_pass():
    assert GOOD.exceeded_limits == []
    assert GOOD.failure == ""
    assert parity.verdict([GOOD]) == ""


def test_an_exceeded_limit_is_named_with_its_row():
    bad = changed(bfloat16={256: {"full": 3.1e-2, "causal": NAN}})
    assert bad.failure == "bad: bfloat16 at T=256 (full) 3.1e-02, limit 1.5e-02 and 1 more"
    assert parity.verdict([GOOD, bad]) == f"1 of 2 mechanisms exceed a limit: {bad.failure}"
    off = ParityResult("off", FORMS | {"extend": {"in 3 parts": 2e-10}}, ERRORS)
    assert off.failure == "off: extend (in 3 parts) 2.0e-10, limit 1.0e-10"


def test_ill_conditioned_mechanisms_have_a_limit_of_a_tenth_on_long_sequences():
    late = {"float32": {256: {"full": 1e-6}, 1024: {"full": 2e-5}}}
    told = ParityResult("wild", FORMS, late, ill_conditioned="its centre moves")
    assert told.failure == ""
    assert ParityResult("wild", FORMS, late).failure == "wild: float32 at T=1024 (full) 2.0e-05, limit 5.0e-06"
    early = ParityResult("wild", FORMS, {"float32": {256: {"full": 2e-5}}}, ill_conditioned="its centre moves")
    assert early.failure == "wild: float32 at T=256 (full) 2.0e-05, limit 5.0e-06"
    far = ParityResult(
        "wild", FORMS, {"float32": {1024: {"full": 0.2, "causal": NAN}}}, ill_conditioned="its centre moves"
    )
    assert [str(each) for each in far.exceeded_limits] == [
        "float32 at T=1024 (full) 2.0e-01, limit 1.0e-01", "float32 at T=1024 (causal) nan, limit 1.0e-01"
    ]  # fmt: skip
    text = shown(GOOD, told, lengths=(256, 1024))
    assert "~2e-5" in text
    assert "~ means a limit of 0.1; wild: its centre moves" in text
    assert "✗nan" in shown(far, lengths=(256, 1024))


@pytest.mark.parametrize("value", [NAN, float("inf")])
def test_nan_exceeds_every_limit(value):
    assert len(changed(float32={64: {"full": value, "causal": None}}).exceeded_limits) == 1


def test_no_comparison_is_no_pass():
    nothing = {kind: dict.fromkeys(found) for kind, found in FORMS.items()}
    assert ParityResult("mute", nothing, ERRORS).failure == "mute: nothing to compare: forms"
    assert ParityResult("ill", exception="TypeError: a slip").failure == "ill: TypeError: a slip"


def test_the_table_fits_a_hundred_columns_and_marks_failed_and_missing_entries():
    bad = ParityResult(
        "softmax-blockwise", FORMS | {"causal": {"attend": 0.5}}, ERRORS | {"float32": {64: {"full": NAN}}}
    )
    text = shown(GOOD, bad, ParityResult("ill", exception="TypeError: a slip"), lengths=(64, 256, 1024, 4096))
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert max(map(len, text.splitlines())) <= 100
    assert lines["good"].split() == [
        "good",
        "4e-16",
        "0",
        "1e-16",
        "0",
        "1.2e-7",
        "3.4e-7",
        "–",
        "–",
        "3e-3",
        "3e-4",
        "ok",
    ]
    assert "✗5e-1" in lines["softmax-blockwise"]
    assert "✗nan" in lines["softmax-blockwise"]
    assert lines["softmax-blockwise"].rstrip().endswith("✗")
    assert lines["ill"].split() == ["ill", *["–"] * 10, "✗"]
    assert "limits: forms 1e-10, f32 5e-6, bf16 1.5e-2, fp16 2e-3" in text


def test_lengths_grow_fourfold_up_to_the_longest():
    assert parity.lengths_to(4096) == (64, 256, 1024, 4096)
    assert parity.lengths_to(300) == (64, 256, 300)
    assert parity.lengths_to(1) == (1,)


def test_an_error_of_one_mechanism_does_not_stop_the_others():
    told = []
    found = list(parity.parity({"broken": Broken(), "mute": Mute()}, (4,), told.append))
    assert found[0].exception == "TypeError: a slip of two lines"
    assert found[1].failure == "mute: nothing to compare: forms, float32, bfloat16, float16"
    assert told[0].startswith("broken: TypeError: a slip of two lines (1 of 2, ")
    assert jax.config.jax_enable_x64 is False


@pytest.fixture
def small(monkeypatch):
    """Shortens comparisons, and returns a function that sets the mechanisms of the registry."""
    monkeypatch.setattr(parity, "PRIME", 17)

    def known(**mechanisms):
        monkeypatch.setattr(attnlab.mechanisms, "MECHANISMS", mechanisms)

    return known


def test_the_parity_command(small, capfd, tmp_path):
    small(sum=Sum(), late=Late(), mean=Mean())
    file = tmp_path / "parity.json"
    assert main(["parity", "sum", "late", "--length", "16", "--json", str(file)]) == 5
    told = capfd.readouterr()
    lines = {line.split()[0]: line for line in told.out.splitlines() if line.strip()}
    assert lines["sum"].split()[-1] == "ok"
    assert lines["late"].count("✗") >= 2
    assert "mean" not in lines
    *progress, last = told.err.splitlines()
    assert progress[0].startswith("sum: ok (1 of 2, ")
    assert last.startswith("attnlab: error: 1 of 2 mechanisms exceed a limit: late: causal (attend) ")
    record = json.loads(file.read_text())
    assert record["passed"] is False
    assert {"jax", "cores", "device", "platform"} <= set(record["machine"])
    assert record["limits"]["forms"] == 1e-10
    assert record["mechanisms"]["sum"]["failure"] is None
    assert record["mechanisms"]["sum"]["errors"]["float32"]["16"]["full"] is None
    assert record["mechanisms"]["late"]["exceeded_limits"][0]["limit"] == 1e-10


def test_a_low_precision_state_exits_with_5(small, capfd):
    small(narrow=Narrow())
    assert main(["parity", "--length", "256"]) == 5
    assert "narrow: bfloat16 at T=256 (causal)" in capfd.readouterr().err


def test_only_json_is_on_standard_output(small, capfd):
    small(mean=Mean())
    assert main(["parity", "--length", "8", "--json"]) == 0
    told = capfd.readouterr()
    assert json.loads(told.out)["mechanisms"]["mean"]["forms"]["causal"]["attend"] is None
    assert "vmap/jit" in told.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sofmax"], "mechanism='sofmax' is not known; nearest: 'softmax'; known: "),
        (["--length", "0"], "--length '0' must be a whole number between 1 and 16777216"),
        (["--length", "1e3"], "--length '1e3' must be a whole number between 1 and 16777216"),
        (["--json", "."], "--json . is a folder, expected a file"),
        (["--json", "nowhere/a.json"], "--json nowhere/a.json: the folder nowhere does not exist"),
        (["--json", "softmax"], "--json softmax must end in .json; name the mechanisms before the options"),
        (["--lenght", "8"], "attnlab parity does not accept '--lenght'; nearest: '--length'"),
        (["--device", "gpuu"], "--device='gpuu' is not known; nearest: 'gpu'"),
    ],
)
def test_malformed_lines_give_one_line(capfd, arguments, words):
    assert main(["parity", *arguments]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"attnlab: error: {words}"), told.err
    assert told.err.count("\n") == 1
