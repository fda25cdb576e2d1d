"""The command `attnlab score`, given its options. It imports only what it needs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.cli.commands import check_run, user_code
from attnlab.console.escape import plain
from attnlab.console.tables import print_table
from attnlab.storage.file_names import as_name
from attnlab.storage.json_file import (
    FolderError,
    JsonObject,
    check_place,
    check_target,
    encode_json,
    encode_utf8,
    write_whole,
)
from attnlab.system import streams

if TYPE_CHECKING:
    from rich.table import Table

    from attnlab.lab.trained.score import Scored

STDOUT = Path("-")


def score(options: argparse.Namespace) -> int:
    """Score a trained run on other files, and write its answers."""
    from rich.console import Console

    check_run(options.run)
    stems = "+".join(Path(Path(file).name.removesuffix(".gz")).stem for file in options.files)
    out = options.out or options.run / as_name(f"answers-{stems[:80]}.tsv")
    if out != STDOUT:
        _check_out(out, named=options.out is not None)
    if options.json is not None:
        _check_json(options.json, out)
    user_code(options)
    from attnlab.lab.trained.score import score, table

    with Console(stderr=True).status("computing the answers"):
        found = score(options.run, options.files, options.step, options.empty)
    answers = table(found)
    if out == STDOUT:
        streams.write(encode_utf8(answers))
    else:
        write_whole(out, answers)
    if options.json is not None:
        write_whole(options.json, encode_json([record(one) for one in found], indent=1) + b"\n")
    for one in found:
        for note in one.notes:
            print(plain(f"attnlab: {note}"), file=sys.stderr)
        stream = sys.stderr if out == STDOUT else None
        if one.metrics:
            print_table(printed(one), stream)
        else:
            no_answers = "no metrics, because the file has no expected answers"
            print(plain(f"{title(one)}; {no_answers}"), file=stream)
    if out != STDOUT:
        print(plain(f"answers: {out}"))
    return 0


def _check_out(path: Path, named: bool) -> None:
    """Check, before anything is computed, that the answers can be written and would not replace a file."""
    other = "set another file with --out FILE, or standard output with --out -"
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} already exists; {other}")
    try:
        check_place("--out", path)
    except FolderError as error:
        raise error if named else FolderError(f"{error}; {other}") from error


def _check_json(path: Path, out: Path) -> None:
    """Check, before anything is computed, that the scores can be written and would not replace a file."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} already exists; set another file with --json FILE")
    check_target("--json", path)
    if path.resolve() == out.resolve():
        raise ValueError(f"--out and --json are the same file, {path}; name two files")


def record(one: Scored) -> JsonObject:
    """Return the scores of a file for JSON, without the answers."""
    return {"file": one.file, "examples": one.examples, "seeds": one.seeds, "metrics": one.metrics, "notes": one.notes}


def title(one: Scored) -> str:
    """Return the name of a file, the numbers of its examples and seeds, and how many examples count if not all do."""
    some = "" if one.scored in (0, one.examples) else f", {one.scored:,} of them with an expected answer"
    examples = "1 example" if one.examples == 1 else f"{one.examples:,} examples"
    seeds = "1 seed" if len(one.seeds) == 1 else f"{len(one.seeds)} seeds"
    return f"{one.file}: {examples}{some}, {seeds}"


def printed(one: Scored) -> Table:
    """Return the metrics of a file as a table for a terminal: the mean over seeds and its interval."""
    from attnlab.console.tables import empty, fill
    from attnlab.lab.results.estimates import estimate

    made = empty(title(one), ["metric", "mean", "95% interval"], 1)
    for name, entry in one.metrics.items():
        value = estimate(entry, name)
        metric = one.declared[name]
        fill(made, [metric.title, metric.format(value.mean), value.format_interval(metric)])
    return made
