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
        raise ValueError(f"{message}; see {self.prog} --help")


def check_working_directory() -> None:
    """Raise FolderError if the working directory was removed."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise FolderError("the working directory no longer exists; change to another one") from error


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
        if empty := next((each for each in arguments if each.startswith("-") and each.endswith("=--")), None):
            raise ValueError(f"{empty}: a value is missing")
        try:
            options, left = parser.parse_known_intermixed_args(arguments)
        except SystemExit as leaving:  # --help
            return int(leaving.code or 0)
        if left:
            known = [option for action in parser._actions for option in action.option_strings]
            raise ValueError(registry.unknown(f"{name} does not accept {left[0]!r}", left[0].split("=")[0], known))
        check_working_directory()
        if self.files:
            streams.spare()
        else:
            streams.check(name)
        return self.act(options)


def _experiment(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="experiment file, for example experiments/dates.py")
    parser.add_argument(
        "overrides",
        metavar="field=value",
        nargs="*",
        default=[],  # without one, argparse would call them required
        help="fields to set, for example model.width=256 train.seeds=0,1,2; variant=NAME keeps only that variant",
    )


def _list_options(parser: Parser) -> None:
    parser.add_argument("kind", nargs="?", metavar="KIND", help=f"one of {', '.join(commands.KINDS)} (default: all)")
    _code_option(parser)


def _show_options(parser: Parser) -> None:
    _experiment(parser)
    parser.add_argument(
        "--roofline", action="store_true", help="also print which operations are compute-bound and which memory-bound"
    )


def _run_options(parser: Parser) -> None:
    _experiment(parser)
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("runs"), help="folder for the results (default: runs/)"
    )
    parser.add_argument(
        "--device", metavar="{cpu,gpu,tpu}", help="device to compute on (default: the fastest available)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="train a preview of a minute or two; its numbers are not meaningful"
    )
    parser.add_argument("--fresh", action="store_true", help="delete earlier results of these variants and start again")
    parser.add_argument(
        "--workers", metavar="N", type=int, default=1, help="processes that share the variants (default: 1)"
    )


def _sample_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of a run, for example runs/dates/softmax")
    add = parser.add_argument
    add("--input", metavar="TEXT", required=True, help="input of the model")
    _code_option(parser)
    _decoding_options(parser)
    add("--best", metavar="N", type=_whole, help="answers to print (from beam search, unless sampling is requested)")
    add("--length", metavar="N", type=_whole, help="symbols to continue a text with (default: one block)")
    add("--html", metavar="FILE.html", type=Path, help="write a page with the answers and all attention maps")


def _inspect_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of a run, for example runs/dates/linear")
    add = parser.add_argument
    add("--input", metavar="TEXT", required=True, help="input of the model")
    _code_option(parser)
    _step_option(parser)
    add(
        "--other",
        metavar="RUN2",
        type=Path,
        help="also print the distance of the attention maps from those of another run",
    )
    add("--html", metavar="FILE.html", type=Path, help="write a page with all attention maps and their figures")
    add("--json", metavar="FILE.json", type=Path, help="write every map and number to this file")


def _score_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of a run, for example runs/trec/bert")
    add = parser.add_argument
    add("files", metavar="FILE", nargs="+", help="file or folder to score, in the format of the run's task")
    words = (
        "file for the answers (default: RUN/answers-FILE.tsv; - is standard output); an existing file is not replaced"
    )
    add("--out", metavar="FILE.tsv", type=Path, help=words)
    add("--json", metavar="FILE.json", type=Path, help="write all metrics, with the values of each seed, to this file")
    words = "refuse or skip lines with one empty side, for example without a target (default: the run's task.empty)"
    add("--empty", metavar="{refuse,skip}", help=words)
    _code_option(parser)
    _step_option(parser)


def _translate_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of a run, for example runs/multi30k/softmax")
    _code_option(parser)
    _decoding_options(parser)
    add = parser.add_argument
    add(
        "--batch",
        metavar="N",
        type=_whole,
        default=32,
        help="maximum number of lines translated together (default: 32)",
    )
    add(
        "--longer",
        metavar="{refuse,truncate}",
        default="refuse",
        help="refuse a line that is too long (default), or truncate it",
    )
    add(
        "--unknown",
        metavar="{refuse,skip}",
        default="refuse",
        help="refuse a line with unknown symbols (default), or skip these symbols",
    )


def _step_option(parser: Parser) -> None:
    words = "checkpoint to use: its step, the best on validation, or the last (default: the model that was tested)"
    parser.add_argument("--step", metavar="N|best|last", type=_step, help=words)


def _code_option(parser: Parser) -> None:
    words = "Python file to run first, which defines and registers your own components (can be given several times)"
    parser.add_argument("--code", metavar="FILE", type=Path, action="append", default=[], help=words)


def _decoding_options(parser: Parser) -> None:
    _step_option(parser)
    add = parser.add_argument
    add("--beam", metavar="N", type=_whole, help="beam size (default: the decoder that the run was tested with)")
    add("--penalty", metavar="A", type=_number, help="length penalty: divide the beam's scores by ((5 + tokens) / 6)^A")
    add("--temperature", metavar="X", type=_number, help="sample from softmax(scores / X)")
    add("--top-k", metavar="N", type=_whole, help="sample from the N most probable symbols")
    add("--top-p", metavar="P", type=_number, help="sample from the most probable symbols whose total probability is P")
    add("--seed", metavar="N", type=_whole, help="random seed of sampling (default: 0)")


def _step(text: str) -> int | str:
    if text in ("best", "last") or text.isdecimal():
        return int(text) if text.isdecimal() else text
    raise argparse.ArgumentTypeError(f"{text!r} must be the number of a step, best or last")


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
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="mechanisms, as listed by attnlab list mechanisms (default: all)"
    )
    parser.add_argument(
        "--json",
        metavar="FILE.json",
        type=Path,
        nargs="?",
        const=Path("-"),
        help="write all numbers to FILE.json (without a file: to standard output, and the tables to standard error)",
    )
    parser.add_argument(
        "--device", metavar="{cpu,gpu,tpu}", help="device to compute on (default: the fastest available)"
    )
    _code_option(parser)


def _parity_options(parser: Parser) -> None:
    _measured(parser)
    parser.add_argument(
        "--length", metavar="N", default="4096", help="length of the longest sequence, in tokens (default: 4096)"
    )


def _bench_options(parser: Parser) -> None:
    _measured(parser)
    add = parser.add_argument
    add(
        "--lengths",
        metavar="N,…",
        default="512,1024,2048,4096",
        help="lengths of the sequences, in tokens (default: 512,1024,2048,4096)",
    )
    add("--heads", metavar="N", default="8", help="number of heads (default: 8)")
    add("--width", metavar="N", default="64", help="width of a head (default: 64)")
    add("--repeat", metavar="N", default="7", help="number of timings of each program (default: 7)")
    masks = parser.add_mutually_exclusive_group()
    masks.add_argument(
        "--causal", action="store_true", help="measure only with the causal mask (default: with and without it)"
    )
    masks.add_argument("--full", action="store_true", help="measure only without a mask")
    add(
        "--peers",
        action="store_true",
        help="also time other libraries that compute the same, if installed (pip install .[peers] in a checkout)",
    )
    add("--plot", metavar="FILE.png", type=Path, help="plot time, memory and the roofline to this file")


VERBS = {
    "list": Verb(
        f"[{'|'.join(commands.KINDS)}] [--code FILE]",
        "list the available names, with a line about each",
        commands.list_names,
        _list_options,
    ),
    "show": Verb(
        "FILE [field=value …] [--roofline]",
        "print the fields of an experiment, and the parameters, FLOPs and memory of each variant, without training",
        commands.show,
        _show_options,
    ),
    "run": Verb(
        "FILE [field=value …] [--out DIR] [--device {cpu,gpu,tpu}] [--quick] [--fresh] [--workers N]",
        "train every variant with every seed and learning rate, or resume; print a table and write a report page",
        commands.run,
        _run_options,
        files=True,
    ),
    "report": Verb(
        "RUNS",
        "write the report pages again from run folders",
        commands.report,
        lambda parser: parser.add_argument(
            "runs", metavar="RUNS", type=Path, help="folder of a run, of a study, or of several studies"
        ),
        files=True,
    ),
    "sample": Verb(
        "RUN --input TEXT [--beam N] [--best N] [--temperature X] [--html FILE.html] [--code FILE] …",
        "run a trained model on one input, and print its answer and its attention",
        commands.sample,
        _sample_options,
    ),
    "score": Verb(
        "RUN FILE … [--out FILE.tsv] [--json FILE.json] [--step N|best|last] [--code FILE] …",
        "write a trained model's answers to other files, and print its metrics if the files have expected answers",
        score.score,
        _score_options,
    ),
    "inspect": Verb(
        "RUN --input TEXT [--step N|best|last] [--other RUN2] [--html FILE.html] [--json FILE.json] [--code FILE]",
        "print rank, entropy and reach of all attention maps, and scores and gradients by layer, at each checkpoint",
        commands.inspect,
        _inspect_options,
    ),
    "translate": Verb(
        "RUN [--beam N] [--batch N] [--longer {refuse,truncate}] [--unknown {refuse,skip}] [--code FILE] … < in > out",
        "translate standard input line by line; a line that is blank or refused becomes empty (refused: exit code 3)",
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
        "measure time and memory and how they grow with length, compared with other libraries and the roofline",
        measure.bench,
        _bench_options,
    ),
    "data": Verb(
        "[NAME …]",
        "fetch and verify data sets, and print where they are",
        commands.data,
        lambda parser: parser.add_argument("names", nargs="*", metavar="NAME", help="data sets (default: all)"),
    ),
}
