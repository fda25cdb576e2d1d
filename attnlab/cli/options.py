"""The options of each command, with their help texts."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from attnlab import registry
from attnlab.cli import commands, measure, score
from attnlab.storage.json_file import FolderError
from attnlab.system import streams


class Parser(argparse.ArgumentParser):
    """An `argparse` parser with exact option names and one-line errors."""

    def __init__(self, **settings: Any):
        super().__init__(allow_abbrev=False, **settings)
        self.add_argument("--debug", action="store_true", help="show the traceback of an error")

    def error(self, message: str) -> NoReturn:
        """Raise ValueError instead of printing the usage."""
        raise ValueError(f"{message}; {self.prog} --help tells more")


def check_working_directory() -> None:
    """Raise FolderError if the working directory was removed."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise FolderError("the working directory is gone: change to one that is there") from error


@dataclass(frozen=True)
class Verb:
    """A command of the command line."""

    takes: str
    """Its arguments, as the usage line shows them."""
    does: str
    """What it does, as the help shows it."""
    act: Callable[[argparse.Namespace], int]
    """Runs the command and returns the exit code."""
    declare: Callable[[Parser], Any]
    """Adds its options to a parser."""
    files: bool = False
    """Whether its results are files. If so, standard output may be closed."""

    def run(self, arguments: list[str], name: str) -> int:
        """Parse the arguments and run the command. Returns the exit code."""
        parser = Parser(prog=name, usage=f"{name} {self.takes}", description=self.does)
        self.declare(parser)
        # argparse would parse `--option=--` as an empty list.
        if lost := next((each for each in arguments if each.startswith("-") and each.endswith("=--")), None):
            raise ValueError(f"{lost}: a value is missing")
        try:
            options, left = parser.parse_known_intermixed_args(arguments)
        except SystemExit as leaving:  # --help
            return int(leaving.code or 0)
        if left:
            known = [option for action in parser._actions for option in action.option_strings]
            raise ValueError(registry.unknown(f"{name} takes no {left[0]!r}", left[0].split("=")[0], known))
        check_working_directory()
        if self.files:
            streams.spare()
        else:
            streams.check(name)
        return self.act(options)


def _experiment(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="an experiment file, such as experiments/dates.py")
    parser.add_argument(
        "overrides",
        metavar="field=value",
        nargs="*",
        default=[],  # without one, argparse would call them required
        help="fields to set, such as model.width=256 train.seeds=0,1,2; variant=NAME trains one variant of the study",
    )


def _list_options(parser: Parser) -> None:
    parser.add_argument("kind", nargs="?", metavar="KIND", help=f"one of {', '.join(commands.KINDS)}")
    _code_option(parser)


def _show_options(parser: Parser) -> None:
    _experiment(parser)
    parser.add_argument("--roofline", action="store_true", help="which operations are compute- or memory-bound")


def _run_options(parser: Parser) -> None:
    _experiment(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("runs"), help="where runs are kept (runs/)")
    parser.add_argument("--device", metavar="{cpu,gpu,tpu}", help="where to compute (default: the fastest there is)")
    parser.add_argument("--quick", action="store_true", help="a preview in a minute or two; its numbers mean nothing")
    parser.add_argument("--fresh", action="store_true", help="start again, deleting what was run before")
    parser.add_argument("--workers", metavar="N", type=int, default=1, help="processes that share the variants (1)")


def _sample_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a run's folder, such as runs/dates/softmax")
    add = parser.add_argument
    add("--input", metavar="TEXT", required=True, help="what the model is given")
    _code_option(parser)
    _decoding_options(parser)
    add("--best", metavar="N", type=_whole, help="how many answers to print (of a beam, unless drawing is asked for)")
    add("--length", metavar="N", type=_whole, help="symbols by which a text is gone on with (default: one block)")
    add("--html", metavar="FILE.html", type=Path, help="write a page of the answers and all attention maps")


def _inspect_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a run's folder, such as runs/dates/linear")
    add = parser.add_argument
    add("--input", metavar="TEXT", required=True, help="what the model is given")
    _code_option(parser)
    _step_option(parser)
    add("--other", metavar="RUN2", type=Path, help="also print how far this run's maps are from those of another")
    add("--html", metavar="FILE.html", type=Path, help="write a page of all attention maps with their figures")
    add("--json", metavar="FILE.json", type=Path, help="write every map and number to this file")


def _score_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a run's folder, such as runs/trec/bert")
    add = parser.add_argument
    add("files", metavar="FILE", nargs="+", help="what to answer: a file or folder like those of the run's task")
    words = "where to write the answers (default: RUN/answers-FILE.tsv; - is standard output); none is replaced"
    add("--out", metavar="FILE.tsv", type=Path, help=words)
    add("--json", metavar="FILE.json", type=Path, help="write all metrics, with the values of each seed, to this file")
    words = "lines with one empty side, such as a source without a target (default: the run's task.empty)"
    add("--empty", metavar="{refuse,skip}", help=words)
    _code_option(parser)
    _step_option(parser)


def _translate_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a run's folder, such as runs/multi30k/softmax")
    _code_option(parser)
    _decoding_options(parser)
    add = parser.add_argument
    add("--batch", metavar="N", type=_whole, default=32, help="lines answered together, at most (default 32)")
    add(
        "--longer",
        metavar="{refuse,truncate}",
        default="refuse",
        help="a line that is too long: refuse it (default) or cut it",
    )
    add(
        "--unknown",
        metavar="{refuse,skip}",
        default="refuse",
        help="unknown symbols: refuse the line (default) or skip them",
    )


def _step_option(parser: Parser) -> None:
    words = "the model of a step: its number, the best on validation, or the last (default: the model that was tested)"
    parser.add_argument("--step", metavar="N|best|last", type=_step, help=words)


def _code_option(parser: Parser) -> None:
    words = "a Python file to run first, which defines and registers what is not attnlab's (may be given several times)"
    parser.add_argument("--code", metavar="FILE", type=Path, action="append", default=[], help=words)


def _decoding_options(parser: Parser) -> None:
    _step_option(parser)
    add = parser.add_argument
    add("--beam", metavar="N", type=_whole, help="beam size (default: the decoder that the run was tested with)")
    add("--penalty", metavar="A", type=_number, help="divide the beam's scores by ((5 + tokens) / 6)^A")
    add("--temperature", metavar="X", type=_number, help="draw at random from softmax(scores / X)")
    add("--top-k", metavar="N", type=_whole, help="draw at random among the N most probable symbols")
    add("--top-p", metavar="P", type=_number, help="draw among the most probable symbols that make up P")
    add("--seed", metavar="N", type=_whole, help="random seed of what is drawn (default 0)")


def _step(text: str) -> int | str:
    if text in ("best", "last") or text.isdecimal():
        return int(text) if text.isdecimal() else text
    raise argparse.ArgumentTypeError(f"{text!r} must be a step's number, best or last")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number") from None


def _measured(parser: Parser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="mechanisms of `attnlab list` (all)")
    parser.add_argument(
        "--json",
        metavar="FILE.json",
        type=Path,
        nargs="?",
        const=Path("-"),
        help="write all numbers to FILE.json (without a file: to standard output, and nothing else)",
    )
    parser.add_argument("--device", metavar="{cpu,gpu,tpu}", help="where to compute (default: the fastest there is)")
    _code_option(parser)


def _parity_options(parser: Parser) -> None:
    _measured(parser)
    parser.add_argument("--length", metavar="N", default="4096", help="the longest sequence, in tokens (default 4096)")


def _bench_options(parser: Parser) -> None:
    _measured(parser)
    add = parser.add_argument
    add(
        "--lengths",
        metavar="N,…",
        default="512,1024,2048,4096",
        help="lengths of the sequences, in tokens (default 512,1024,2048,4096)",
    )
    add("--heads", metavar="N", default="8", help="heads (default 8)")
    add("--width", metavar="N", default="64", help="width of a head (default 64)")
    add("--repeat", metavar="N", default="7", help="how often each is timed (default 7)")
    masks = parser.add_mutually_exclusive_group()
    masks.add_argument("--causal", action="store_true", help="only with the causal mask (default: with and without)")
    masks.add_argument("--full", action="store_true", help="only without a mask")
    add(
        "--peers",
        action="store_true",
        help="also time other libraries that compute the same, where installed (.[peers] of a checkout)",
    )
    add("--plot", metavar="FILE.png", type=Path, help="draw time, memory and the roofline to this file")


VERBS = {
    "list": Verb(
        f"[{'|'.join(commands.KINDS)}] [--code FILE]",
        "list names, with a line about each",
        commands.list_names,
        _list_options,
    ),
    "show": Verb(
        "FILE [field=value …] [--roofline]",
        "print an experiment's fields and each variant's parameters, FLOPs and memory; trains nothing",
        commands.show,
        _show_options,
    ),
    "run": Verb(
        "FILE [field=value …] [--out DIR] [--device {cpu,gpu,tpu}] [--quick] [--fresh] [--workers N]",
        "train every variant with every seed and learning rate; resumes by itself; ends with a table and a report page",
        commands.run,
        _run_options,
        files=True,
    ),
    "report": Verb(
        "RUNS",
        "make the report pages again from run folders",
        commands.report,
        lambda parser: parser.add_argument(
            "runs", metavar="RUNS", type=Path, help="a folder of studies, a study, or a run"
        ),
        files=True,
    ),
    "sample": Verb(
        "RUN --input TEXT [--beam N] [--best N] [--temperature X] [--html FILE.html] [--code FILE] …",
        "give a trained model an input; print its answer and its attention",
        commands.sample,
        _sample_options,
    ),
    "score": Verb(
        "RUN FILE … [--out FILE.tsv] [--json FILE.json] [--step N|best|last] [--code FILE] …",
        "examine a trained model on other files: its metrics over all seeds, and its answers (inputs alone: answers)",
        score.score,
        _score_options,
    ),
    "inspect": Verb(
        "RUN --input TEXT [--step N|best|last] [--other RUN2] [--html FILE.html] [--json FILE.json] [--code FILE]",
        "rank, entropy and reach of every attention map; scores and gradients by layer, at each checkpoint kept",
        commands.inspect,
        _inspect_options,
    ),
    "translate": Verb(
        "RUN [--beam N] [--batch N] [--longer {refuse,truncate}] [--unknown {refuse,skip}] [--code FILE] … < in > out",
        "write one line for each line read; an empty one for a blank line or one that is refused (then exit code 3)",
        commands.translate,
        _translate_options,
    ),
    "parity": Verb(
        "[NAME …] [--length N] [--json [FILE.json]] [--device {cpu,gpu,tpu}] [--code FILE]",
        "compare all forms of each mechanism in float64, and measure the error of each precision",
        measure.parity,
        _parity_options,
    ),
    "bench": Verb(
        "[NAME …] [--lengths N,…] [--causal|--full] [--peers] [--json [FILE.json]] [--plot FILE.png] [--code FILE] …",
        "measure time and memory and how they grow with length, beside peers and this machine's roofline",
        measure.bench,
        _bench_options,
    ),
    "data": Verb(
        "[NAME …]",
        "fetch and verify data sets, and say where they are",
        commands.data,
        lambda parser: parser.add_argument("names", nargs="*", metavar="NAME", help="data sets (all)"),
    ),
}
