"""Checks that hostile names of studies, variants, metrics, symbols and files affect no page, terminal or path."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attnlab.lab
from attnlab.cli import main
from attnlab.console import errors
from attnlab.console.metric import Metric
from attnlab.console.tables import columns, print_table
from attnlab.decoding import Beam
from attnlab.lab.execution.live_bar import Terminal
from attnlab.lab.execution.log_lines import Plain
from attnlab.lab.planning.summary import settings
from attnlab.lab.reporting import inspect_page, report, sample_page
from attnlab.lab.results.outcome import outcomes
from attnlab.lab.results.table import results_table
from attnlab.lab.runs.run_folder import RunFolder
from attnlab.lab.study.study import Study
from attnlab.lab.study.variation import over
from attnlab.lab.trained import translate
from attnlab.lab.trained.decoding import Answer
from attnlab.lab.trained.inspect_tables import tables
from attnlab.lab.trained.sample import lines
from attnlab.training.progress import Silent
from tests.faults.count import Fault
from tests.faults.harm import Place, refused
from tests.lab.looked import FOUND
from tests.lab.synthetic import write_run
from tests.small import EXPERIMENT

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)>&lt;b&gt;-->]]>"
# Without a dot, because the part of a metric's name after a dot is the name of a group.
STEERS = "\x1b[2J\x1b]0;owned\x07\x9b2J\x7f\b\r\n\t\x00\u202egpj\u2066\u2028"
HOSTILE, HARMLESS = SCRIPT + STEERS, "a plain name"


def run_in(place: Place, variant: str = "softmax", **more: Any) -> RunFolder:
    """Writes a valid finished run and returns its folder."""
    return write_run(place.root / "dates" / variant, variant, steps=20, examples=1, groups=(), **more)


def shown(study: Path) -> str:
    """Returns the page of a study, and prints the table of the study to the terminal."""
    page = report(study)
    print_table(results_table(study))
    return page.read_text()


def _study_of(place: Place, word: str) -> Path:
    """Writes a finished study in which every name is `word`, and returns its folder."""
    home = place.root / word.replace("/", "").replace("\0", "")[:60]
    for n in range(2):
        variant = f"{n}{word}".replace("/", "").replace("\0", "")
        run = write_run(home / variant, variant, steps=40, examples=1, groups=("g",), salt=n, order=n)
        experiment = run.read("experiment") or {}
        kept = {"result": run.read("result") or {}, "maps": run.read("maps") or {}}
        rows = run.metrics()
        model = {"registry": word, "name": word, "fields": {word: [word], "width": 4 + n}}
        experiment |= {"question": word, "study": word, "command": word, "fingerprint": word}
        run.write("experiment", experiment | {"experiment": experiment["experiment"] | {"model": model}})
        run.write("environment", {word: word, "jax": word})
        metrics = kept["result"]["metrics"]
        renamed = {word: metrics["exact_match"], f"{word}.{word}": metrics["exact_match.g"], "loss": metrics["loss"]}
        run.write("result", {**kept["result"], "metrics": renamed, "metric": word, "fingerprint": word})
        for example in kept["maps"]["examples"]:
            example["source"] = [word] * len(example["source"])
            example["target"] = [word] * len(example["target"])
        run.write("maps", kept["maps"])
        run.file("metrics").unlink()
        run.append_metrics([{**row, f"valid.{word}": 0.5} if row["step"] == 40 else row for row in rows])
    return home


class Bones(HTMLParser):
    """The elements of a page, the names of their attributes, event handlers and external links."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[Any] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, sorted(name for name, _ in attrs)))
        for name, value in attrs:
            if name.startswith("on") or (name in ("href", "src") and not (value or "").startswith(("data:", "#"))):
                self.found.append((name, value))

    def handle_endtag(self, tag):
        self.found.append(tag)


def pages(place: Place) -> None:
    """Checks that scripts in names do not change the elements of a page, compared with harmless names."""
    made = {}
    for word in (HARMLESS, HOSTILE):
        home = _study_of(place, word)
        report(home)
        seen = {"source": [word] * 2, "target": [word], "layers": [[[[0.5, 0.5]]]]}
        answers = [Answer(word, -1.0, False, ()) for _ in range(2)]
        sample_page.write(home / "a.html", {"answer": word, "answers": answers, "decoder": Beam(), **seen}, word, home)
        inspect_page.write(home / "i.html", _inside(word), word, home)
        bones = {name: Bones((home / name).read_text()).found for name in ("report.html", "a.html", "i.html")}
        made[word] = {"files": [path.name for path in sorted(home.iterdir()) if path.is_file()], **bones}
    for name, bones in made[HARMLESS].items():
        if bones != made[HOSTILE][name]:
            n = next(
                (n for n, pair in enumerate(zip(bones, made[HOSTILE][name], strict=False)) if pair[0] != pair[1]), 0
            )
            raise Fault(f"{name}: {made[HOSTILE][name][n : n + 3]} in the place of {bones[n : n + 3]}")


def _inside(word: str) -> dict[str, Any]:
    """Returns a result of `inspect` in which every name is `word`."""
    attention = {**FOUND["attentions"]["encoder"], "mechanism": word, "rows": [word] * 2, "columns": [word] * 3}
    rows = [
        {**row, "scores": {word: row["scores"]["encoder"]}, "statistics": {word: row["statistics"]["encoder"]},
         "parts": {word: {"parameters": 1.0, "gradient": 1.0}}}
        for row in FOUND["training"]
    ]  # fmt: skip
    ends = {word: FOUND["distance"]["attentions"]["encoder"]}
    return {
        **FOUND, "answer": word, "notes": [word], "attentions": {word: attention}, "training": rows,
        "distance": {"run": word, "notes": [word], "attentions": ends},
    }  # fmt: skip


class Stand:
    """A translator that answers every line with a hostile name."""

    longest = 9

    def __call__(self, groups):
        for group in groups:
            yield [translate.Answered(n, HOSTILE.replace("\n", " "), HOSTILE, True) for n, _ in enumerate(group, 1)]


def terminals(place: Place) -> None:
    """Prints terminal control sequences in every name that reaches a terminal.

    `tests.faults.hostile.run` checks the printed text.
    """
    home = _study_of(place, HOSTILE)
    print_table(results_table(home))
    for words in (
        ["report", str(home)], ["report", str(place.root / STEERS[:8])], ["sample", str(home), "--input", "a"],
        ["run", f"no{STEERS}.py"], [f"ver{STEERS}b"], [f"--{STEERS}"], ["list", STEERS], ["data", STEERS],
    ):  # fmt: skip
        if (code := main.main(words)) not in (0, 2, 3, 4):
            raise Fault(f"attnlab {words[0]!r} left with {code}")
    print(repr(attnlab.lab.Results(home, home / "report.html", 0).verdicts()))
    print(repr(attnlab.lab.Results(home, home / "report.html", 0).table()))
    answers = [Answer(HOSTILE, -1.0, False, ()) for _ in range(2)]
    seen = {"source": [HOSTILE] * 2, "target": [HOSTILE], "map": [[0.5, 0.5]]}
    print("\n".join(lines({"answer": HOSTILE, "answers": answers, "decoder": Beam(), "cut": True, **seen})))
    for table in tables(_inside(HOSTILE)):
        print_table(table)
    print("\n".join(columns([[HOSTILE, "b"], ["c", HOSTILE]])))
    asked = Study(EXPERIMENT, over("train.steps", one=1, two=2), name="tiny", question=HOSTILE)
    print("\n".join(settings(asked)))
    for progress in (Plain(), Terminal()):
        progress.variant(HOSTILE, 0, 1, 10)
        progress.compiling(HOSTILE)
        progress.compiled(HOSTILE, 1.0)
        progress.advanced(1, 1.0)
        progress.evaluated(1, {Metric(HOSTILE): 0.5})
        progress.note(HOSTILE)
        progress.close()
    print(errors.explain(ValueError(HOSTILE))[0])
    with (place.root / "in").open("w+b") as source, (place.root / "out").open("w+b") as sink:
        source.write(b"one\ntwo\n")
        source.seek(0)
        translate.stream(Stand(), source, sink, lambda line: print(line, file=sys.stderr))
        sink.seek(0)
        if sink.read().count(b"\n") != 2:
            raise Fault("a line in does not have one line out")


class Halted(Silent):
    """A progress listener that raises Fault if a run that should be refused begins to compile."""

    def compiling(self, what):
        raise Fault(f"it was not refused: it compiles {what}")


def upwards(place: Place) -> None:
    """Checks that names of studies and variants that lead out of their folder are refused."""
    out = place.root / "runs"
    for name in ("../x", "..", "/x", "a/b", "a\\b", "x\n", "\x1b[2J", "C:", ".hidden", "x ", "\u202e", "x" * 300):
        refused("cannot name a folder", attnlab.lab.run, Study(EXPERIMENT, name=name), out=out, progress=Halted())
        vary = lambda name=name: over("train.steps", **{name: 1})
        refused("cannot name a folder", vary)
    if out.exists():
        raise Fault("something was written for a study that was refused")
    run = run_in(place)
    run.write("experiment", {**(run.read("experiment") or {}), "study": "../x", "variant": "../../y"})
    shown(run.path.parent)
    if [outcome.name for outcome in outcomes(run.path.parent)] != ["softmax"]:
        raise Fault("a variant is called otherwise than its folder")


CASES: dict[str, Callable[[Place], None]] = {
    "scripts in names on pages": pages,
    "terminal sequences in names": terminals,
    "names that lead upwards": upwards,
}
