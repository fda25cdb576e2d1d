"""The arguments of each command, with their help texts."""

from pathlib import Path

from attnlab.cli.commands import KINDS
from attnlab.cli.parser import Parser, integer, number, positive, step
from attnlab.storage.file_names import as_text

INPUT = "input: a text, or for other tasks an example such as test:12, a file, or a node"


def _experiment(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="experiment file, for example experiments/dates.py")
    parser.add_argument(
        "overrides",
        metavar="field=value",
        type=as_text,
        nargs="*",
        default=[],  # without one, argparse would call them required
        help="fields to set, for example model.width=256 train.seeds=0,1,2; variant=NAME keeps only that variant",
    )


def list_names(parser: Parser) -> None:
    """Add the arguments of `attnlab list`."""
    parser.add_argument("kind", nargs="?", metavar="KIND", help=f"one of {', '.join(KINDS)} (default: all)")
    _code_option(parser)


def show(parser: Parser) -> None:
    """Add the arguments of `attnlab show`."""
    _experiment(parser)
    words = "also print which operations are compute-bound and which memory-bound"
    parser.add_argument("--roofline", action="store_true", help=words)


def run(parser: Parser) -> None:
    """Add the arguments of `attnlab run`."""
    _experiment(parser)
    add = parser.add_argument
    add("--out", metavar="DIR", type=Path, default=Path("runs"), help="folder for the results (default: runs/)")
    _device_option(parser)
    add("--quick", action="store_true", help="train a preview of a minute or two; its numbers are not meaningful")
    add("--fresh", action="store_true", help="delete earlier results of these variants and start again")
    words = "processes that share the variants (default: what is faster here, 1 on an accelerator)"
    add("--workers", metavar="N", type=int, help=words)
    add("--no-cache", dest="cache", action="store_false", help="do not keep compiled programs for later runs")


def sample(parser: Parser) -> None:
    """Add the arguments of `attnlab sample`."""
    _run(parser, "runs/dates/softmax")
    add = parser.add_argument
    add("--input", metavar="TEXT", type=as_text, required=True, help=INPUT)
    _code_option(parser)
    _decoding_options(parser)
    add("--best", metavar="N", type=integer, help="answers to print (from beam search, unless sampling is requested)")
    add("--length", metavar="N", type=integer, help="symbols to continue a text with (default: one block)")
    add("--html", metavar="FILE.html", type=Path, help="write a page with the answers and all attention maps")


def inspect(parser: Parser) -> None:
    """Add the arguments of `attnlab inspect`."""
    _run(parser, "runs/dates/linear")
    add = parser.add_argument
    add("--input", metavar="TEXT", type=as_text, required=True, help=INPUT)
    _code_option(parser)
    _step_option(parser)
    words = "also print the distance of the attention maps from those of another run"
    add("--other", metavar="RUN2", type=Path, help=words)
    add("--html", metavar="FILE.html", type=Path, help="write a page with all attention maps and their statistics")
    add("--json", metavar="FILE.json", type=Path, help="write every map and number to this file")


def score(parser: Parser) -> None:
    """Add the arguments of `attnlab score`."""
    _run(parser, "runs/trec/bert")
    add = parser.add_argument
    add(
        "files",
        metavar="FILE",
        type=as_text,
        nargs="+",
        help="file or folder to score, in the format of the run's task",
    )
    words = (
        "file for the answers (default: RUN/answers-FILE.tsv; - is standard output); an existing file is not replaced"
    )
    add("--out", metavar="FILE.tsv", type=Path, help=words)
    add("--json", metavar="FILE.json", type=Path, help="write all metrics, with the values of each seed, to this file")
    words = "refuse or skip lines with one empty side, for example without a target (default: the run's task.empty)"
    add("--empty", choices=("refuse", "skip"), help=words)
    _code_option(parser)
    _step_option(parser)


def translate(parser: Parser) -> None:
    """Add the arguments of `attnlab translate`."""
    _run(parser, "runs/multi30k/softmax")
    _code_option(parser)
    _decoding_options(parser)
    add = parser.add_argument
    add(
        "--batch",
        metavar="N",
        type=positive,
        default=32,
        help="maximum number of lines translated together (default: 32)",
    )
    words = "refuse a line that is too long (default), or truncate it"
    add("--longer", choices=("refuse", "truncate"), default="refuse", help=words)
    words = "refuse a line with unknown symbols (default), or skip these symbols"
    add("--unknown", choices=("refuse", "skip"), default="refuse", help=words)


def _measured(parser: Parser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="mechanisms, as listed by attnlab list mechanisms (default: all)"
    )
    words = "write all numbers to FILE.json (without a file: to standard output, and the tables to standard error)"
    parser.add_argument("--json", metavar="FILE.json", type=Path, nargs="?", const=Path("-"), help=words)
    _device_option(parser)
    _code_option(parser)


def parity(parser: Parser) -> None:
    """Add the arguments of `attnlab parity`."""
    _measured(parser)
    add = parser.add_argument
    add("--length", metavar="N", help="length of the longest sequence, in tokens (default: 4096)")
    words = "compare with functions of other libraries instead, if installed (pip install .[parity] in a checkout)"
    add("--peers", action="store_true", help=words)


def bench(parser: Parser) -> None:
    """Add the arguments of `attnlab bench`."""
    _measured(parser)
    add = parser.add_argument
    words = "lengths of the sequences, in tokens (default: 512,1024,2048,4096)"
    add("--lengths", metavar="N,…", default="512,1024,2048,4096", help=words)
    add("--heads", metavar="N", default="8", help="number of heads (default: 8)")
    add("--width", metavar="N", default="64", help="width of a head (default: 64)")
    add("--repeat", metavar="N", default="7", help="number of timings of each program (default: 7)")
    masks = parser.add_mutually_exclusive_group()
    masks.add_argument(
        "--causal", action="store_true", help="measure only with the causal mask (default: with and without it)"
    )
    masks.add_argument("--full", action="store_true", help="measure only without a mask")
    words = "also time other libraries that compute the same, if installed (pip install .[peers] in a checkout)"
    add("--peers", action="store_true", help=words)
    add("--plot", metavar="FILE.png", type=Path, help="plot time, memory and the roofline to this file")


def report(parser: Parser) -> None:
    """Add the arguments of `attnlab report`."""
    words = "folder of a run, of a study, or of several studies"
    parser.add_argument("runs", metavar="RUNS", type=Path, help=words)


def data(parser: Parser) -> None:
    """Add the arguments of `attnlab data`."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets (default: all)")


def _run(parser: Parser, example: str) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help=f"folder of a run, for example {example}")


def _device_option(parser: Parser) -> None:
    words = "device to compute on (default: the fastest available)"
    parser.add_argument("--device", metavar="{cpu,gpu,tpu}", help=words)


def _step_option(parser: Parser) -> None:
    words = "checkpoint to use: its step, the best on validation, or the last (default: the model that was tested)"
    parser.add_argument("--step", metavar="N|best|last", type=step, help=words)


def _code_option(parser: Parser) -> None:
    words = "Python file to run first, which defines and registers your own components (can be given several times)"
    parser.add_argument("--code", metavar="FILE", type=Path, action="append", default=[], help=words)


def _decoding_options(parser: Parser) -> None:
    _step_option(parser)
    add = parser.add_argument
    add("--beam", metavar="N", type=integer, help="beam size (default: the decoder that the run was tested with)")
    add("--penalty", metavar="A", type=number, help="length penalty: divide the beam's scores by ((5 + tokens) / 6)^A")
    add("--temperature", metavar="X", type=number, help="sample from softmax(scores / X)")
    add("--top-k", metavar="N", type=integer, help="sample from the N most probable symbols")
    add("--top-p", metavar="P", type=number, help="sample from the most probable symbols whose total probability is P")
    add("--seed", metavar="N", type=integer, help="random seed of sampling (default: 0)")
