"""The commands of the command line, given their options. Each imports only what it needs."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab import registry
from attnlab.console.escape import plain
from attnlab.console.format import listing
from attnlab.console.tables import print_table
from attnlab.storage.json_file import FolderError, check_target, encode_json, folder_errors, write_whole

if TYPE_CHECKING:
    from attnlab.lab.study import Study
    from attnlab.lab.trained.decoding import DecodingOptions
    from attnlab.training.progress import Progress

KINDS = (
    "mechanisms",
    "patterns",
    "features",
    "scores",
    "positions",
    "attentions",
    "scalings",
    "models",
    "tasks",
    "units",
    "decoders",
    "experiments",
)
EXPLAINED = {  # shown after the name of a kind
    "attentions": "attention layers; set by model.attention",
    "units": "tokenizers; set by task.units",
}


def list_names(options: argparse.Namespace) -> int:
    """List names with a line about each."""
    from attnlab.console.tables import columns
    from attnlab.lab.study.load import experiments

    user_code(options)
    if options.kind is not None:
        registry.pick(dict.fromkeys(KINDS), options.kind, "list")
    for n, kind in enumerate([options.kind] if options.kind else KINDS):
        if kind == "experiments":
            lines = experiments()
        else:
            lines = {name: registry.first_line(value) for name, value in registry.table(kind.upper()).items()}
        heading = f"{kind} ({EXPLAINED[kind]})" if kind in EXPLAINED else kind
        print(("\n" if n else "") + heading)
        print("\n".join(columns([["  " + name, line] for name, line in lines.items()]) or ["  none in ./experiments"]))
    return 0


def show(options: argparse.Namespace) -> int:
    """Print a study's fields and costs. Nothing is trained."""
    from rich.console import Console

    from attnlab.lab.planning.summary import show

    with Console(stderr=True).status("counting the costs of each variant"):
        words = show(_study(options), options.roofline)
    print(words)
    return 0


def run(options: argparse.Namespace) -> int:
    """Train every variant and lane, then print the table and write the page."""
    from attnlab.lab.execution.progress import choose
    from attnlab.system.signals import TRAINED, UNBEGUN, Interrupted, raise_on_signal

    progress = choose()
    try:
        with raise_on_signal(UNBEGUN, progress.note):
            study = _ready(options)
        with raise_on_signal(TRAINED, progress.note):
            return _run(options, study, progress)
    except Interrupted as stopped:
        resume = resume_command(options, fresh=options.fresh and stopped.where == UNBEGUN)
        raise Interrupted(stopped.number, f"{stopped.where}; to continue: {resume}") from None


def _ready(options: argparse.Namespace) -> Study:
    """Select the device, import what trains, and return the study."""
    from attnlab.system.device import use

    with folder_errors(options.out):
        if options.out.exists() and not options.out.is_dir():
            raise ValueError(f"--out {options.out} is a file, expected a folder")
    if options.workers is not None and options.workers < 1:
        raise ValueError(f"--workers {options.workers} must be at least 1")
    use(options.device, options.workers or 1)
    import_module("attnlab.lab.launch")
    return _study(options)


def _run(options: argparse.Namespace, study: Study, progress: Progress) -> int:
    """Train the study and print its table. Returns the exit code."""
    from attnlab.lab.launch import run
    from attnlab.lab.results.table import results_table

    try:
        results = run(
            study,
            out=options.out,
            quick=options.quick,
            fresh=options.fresh,
            workers=options.workers,
            cache=options.cache,
            progress=progress,
            command=repeat_command(options),
        )
    finally:
        progress.close()
    print_table(results_table(results.folder))
    if options.quick:
        print("this was a preview (--quick); its numbers are not meaningful")
    if results.report is not None:
        print(plain(f"report: {results.report}"))
    if results.code == 5:
        print("attnlab: error: training diverged in some lanes; the table shows how many", file=sys.stderr)
    return results.code


def repeat_command(options: argparse.Namespace) -> str:
    """Return the command that repeats a run.

    It is stored with the results, so an absolute path of the experiment file is reduced to the file's name.
    """
    file = options.file.name if options.file.is_absolute() else str(options.file)
    return shlex.join(["attnlab", "run", file, *options.overrides, *(["--quick"] if options.quick else [])])


def resume_command(options: argparse.Namespace, fresh: bool = False) -> str:
    """Return the command that continues a stopped run.

    Args:
        options: The options of the stopped run.
        fresh: Whether to keep `--fresh`, because the earlier results were not deleted yet.
    """
    how = ["--out", str(options.out), *(["--device", options.device] if options.device else [])]
    quick = [*(["--quick"] if options.quick else []), *(["--fresh"] if fresh else [])]
    workers = ["--workers", str(options.workers)] if options.workers is not None else []
    cache = [] if options.cache else ["--no-cache"]
    return shlex.join(["attnlab", "run", str(options.file), *options.overrides, *how, *quick, *workers, *cache])


def report(options: argparse.Namespace) -> int:
    """Write the report pages again from run folders."""
    from attnlab.lab.reporting.pages import pages

    for page in pages(_studies(options.runs)):
        print(plain(f"report: {page}"))
    return 0


def sample(options: argparse.Namespace) -> int:
    """Print the answers of a trained model to one input, and its attention."""
    check_run(options.run)
    decoding = _decoding(options)
    user_code(options)
    from attnlab.lab.trained.sample import lines, sample

    if options.html is not None:
        check_target("--html", options.html)
    found = sample(options.run, options.input, decoding, options.step)
    if options.html is not None:
        from attnlab.lab.reporting.sample_page import write

        write(options.html, found, options.input, options.run)
    width = os.get_terminal_size().columns if sys.stdout.isatty() else None
    print("\n".join(lines(found, width)))
    for note in found["notes"]:
        print(f"attnlab: {note}", file=sys.stderr)
    if options.html is not None:
        print(plain(f"alignment: {options.html}"))
    return 0


def inspect(options: argparse.Namespace) -> int:
    """Print the statistics of every map of a trained model on one input, also through training."""
    for folder in (options.run, options.other):
        if folder is not None:
            check_run(folder)
    user_code(options)
    from attnlab.lab.trained.inspect import inspect
    from attnlab.lab.trained.inspect_tables import tables

    # An output file that cannot be written is reported before a model is loaded.
    for option in ("html", "json"):
        if (file := getattr(options, option)) is not None:
            check_target(f"--{option}", file)
    found = inspect(options.run, options.input, options.other, options.step)
    if options.html is not None:
        from attnlab.lab.reporting.inspect_page import write

        write(options.html, found, options.input, options.run)
    if options.json is not None:
        write_whole(options.json, encode_json(found) + b"\n")
    print("\n".join(map(plain, found["answer"].split("\n"))))
    for table in tables(found):
        print_table(table)
    for name, file in (("page", options.html), ("record", options.json)):
        if file is not None:
            print(plain(f"{name}: {file}"))
    return 0


def translate(options: argparse.Namespace) -> int:
    """Translate standard input to standard output, line by line."""
    check_run(options.run)
    decoding = _decoding(options)
    if sys.stdin is None:
        raise ValueError("standard input is closed; translate reads its lines from standard input")
    user_code(options)
    from attnlab.lab.trained.translate import Translator, stream

    translator = Translator(options.run, decoding, options.batch, options.longer, options.unknown, options.step)
    warn = lambda line: print(f"attnlab: {line}", file=sys.stderr, flush=True)
    return stream(translator, sys.stdin.buffer, sys.stdout.buffer, warn)


def _decoding(options: argparse.Namespace) -> DecodingOptions:
    """Collect the options of decoding that the command has."""
    from dataclasses import fields

    from attnlab.lab.trained.decoding import DecodingOptions

    names = {field.name for field in fields(DecodingOptions)}
    return DecodingOptions(**{name: value for name, value in vars(options).items() if name in names})


def data(options: argparse.Namespace) -> int:
    """Fetch and verify data sets, and print where each file is."""
    from attnlab.console.tables import columns
    from attnlab.data.io.files import DataError
    from attnlab.data.io.sources import data as places

    rows = list(places(options.names))
    print("\n".join(columns([["set", "file", "", "where"], *[_data_row(*row) for row in rows]])))
    errors = [error for _, _, error, path in rows if path is None]
    if errors:
        others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise DataError(f"{errors[0]}{others}")
    return 0


def _data_row(folder: str, file: str, status: str, path: str | None) -> list[str]:
    return [folder, file, "unavailable" if path is None else status, path or "–"]


def _study(options: argparse.Namespace) -> Study:
    """Load the study and apply the overrides. Raises ValueError for any error in them."""
    from attnlab.lab.study.load import load_study
    from attnlab.lab.study.overrides import apply

    try:
        return apply(load_study(options.file), options.overrides)
    except (ValueError, NotImplementedError) as error:
        # A ValueError raised here is reported as a usage error, also if the user's own config raised it.
        raise ValueError(str(error)) from error


def user_code(options: argparse.Namespace) -> None:
    """Run the files given by `--code`, which define and register the user's own components."""
    from attnlab.lab.study.load import load_code

    for file in options.code:
        load_code(file)


def check_run(folder: Path) -> None:
    """Check that a folder is a run folder. Raises FolderError that lists runs in it or in its studies, if it is not."""
    if (folder / "experiment.json").is_file():
        return
    inside = sorted(folder.glob("*/experiment.json")) or sorted(folder.glob("*/*/experiment.json"))
    runs = listing([str(path.parent) for path in inside])
    hint = f"; it contains the runs {runs}" if inside else "; it has no experiment.json"
    raise FolderError(f"{folder} is not a run folder{hint}")


def _studies(folder: Path) -> list[Path]:
    """Return the study folders that `folder` refers to: itself, those in it, or that of a run."""
    if (folder / "experiment.json").is_file():
        return [Path(os.path.abspath(folder)).parent if folder.name in ("", "..") else folder.parent]
    found = sorted({path.parent.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/experiment.json")})
    if not found:
        raise FolderError(f"{folder} contains no runs: no folder in it has an experiment.json")
    return found
