"""What the verb that scores does, given its options. It imports only what it needs."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.lab.jsonfile import FolderError, check_place, check_target, dumps, write_whole
from attnlab.lab.terminal import plain
from attnlab.lab.verbs import check_run, own_code, print_table

if TYPE_CHECKING:
    from attnlab.lab.scoring import Scored

STDOUT = Path("-")


def score(options: argparse.Namespace) -> int:
    """The metrics of a trained run on other files, and its answers to them."""
    from rich.console import Console

    check_run(options.run)
    stems = "+".join(Path(Path(file).name.removesuffix(".gz")).stem for file in options.files)
    out = options.out or options.run / f"answers-{stems[:80]}.tsv"
    if out != STDOUT:
        _check_out(out, named=options.out is not None)
    if options.json is not None:
        check_target("--json", options.json)
    own_code(options)
    from attnlab.lab.scoring import score, table

    with Console(stderr=True).status("answering"):
        found = score(options.run, options.files, options.step, options.empty)
    answers = table(found)
    if out == STDOUT:
        sys.stdout.write(answers)
    else:
        write_whole(out, answers)
    if options.json is not None:
        write_whole(options.json, dumps([record(one) for one in found], indent=1) + "\n")
    for one in found:
        for note in one.notes:
            print(plain(f"attnlab: {note}"), file=sys.stderr)
        print_table(printed(one), sys.stderr if out == STDOUT else None)
    if out != STDOUT:
        print(plain(f"answers: {out}"))
    return 0


def _check_out(path: Path, named: bool) -> None:
    """Raise where the answers could not be written, or would replace a file, before anything is computed."""
    other = "--out FILE names another place, --out - is standard output"
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} exists and is not replaced: {other}")
    try:
        check_place("--out", path)
    except FolderError as error:
        raise error if named else FolderError(f"{error}: {other}") from error


def record(one: "Scored") -> dict[str, Any]:
    """What was found of a file, as JSON holds it, without the answers."""
    return {"file": one.file, "examples": one.examples, "seeds": one.seeds, "metrics": one.metrics, "notes": one.notes}


def printed(one: "Scored") -> Any:
    """The metrics of a file as a table for a terminal: the mean over seeds, and its interval."""
    from attnlab.lab.benching.table import empty, fill
    from attnlab.lab.estimates import estimate
    from attnlab.lab.quantity import measure, title

    seeds = f"{len(one.seeds)} seed{'s' * (len(one.seeds) > 1)}"
    known = "" if one.metrics else "; the right answers are not known, and nothing is measured"
    made = empty(f"{one.file}: {one.examples:,} examples, {seeds}{known}", ["metric", "mean", "95% interval"], 1)
    for name, entry in one.metrics.items():
        value = estimate(entry, name)
        fill(made, [title(name), measure(name, value.mean), value.reach(name)])
    return made
