"""The commands of the command line, each with its usage, its arguments and what it does."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass

from attnlab import registry
from attnlab.cli import commands, measure, options, score
from attnlab.cli.parser import Parser
from attnlab.storage.json_file import FolderError
from attnlab.system import streams


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
    declare: Callable[[Parser], None]
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
            given, left = parser.parse_known_intermixed_args(arguments)
        except ValueError:
            # While options and positionals mix, argparse names the missing options alone. This error names all.
            parser.parse_known_args(arguments)
            raise
        except SystemExit as leaving:  # --help
            return int(leaving.code or 0)
        if left:
            refused = f"{name} does not accept {left[0]!r}"
            if not left[0].startswith("-"):
                raise ValueError(f"{refused}; usage: {parser.usage}")
            known = [option for action in parser._actions for option in action.option_strings]
            raise ValueError(registry.unknown(refused, left[0].split("=")[0], known))
        check_working_directory()
        if self.files:
            streams.discard_if_closed()
        else:
            streams.check(name)
        return self.act(given)


VERBS = {
    "list": Verb(
        f"[{'|'.join(commands.KINDS)}] [--code FILE]",
        "list the available names, with a line about each",
        commands.list_names,
        options.list_names,
    ),
    "show": Verb(
        "FILE [field=value …] [--roofline]",
        "print the fields of an experiment, and the parameters, FLOPs and memory of each variant, without training",
        commands.show,
        options.show,
    ),
    "run": Verb(
        "FILE [field=value …] [--out DIR] [--device {cpu,gpu,tpu}] [--quick] [--fresh] [--workers N] [--no-cache]",
        "train every variant with every seed and learning rate, or resume; print a table and write a report page",
        commands.run,
        options.run,
        files=True,
    ),
    "report": Verb(
        "RUNS",
        "write the report pages again from run folders",
        commands.report,
        options.report,
        files=True,
    ),
    "sample": Verb(
        "RUN --input TEXT [--beam N] [--best N] [--temperature X] [--html FILE.html] [--code FILE] …",
        "run a trained model on one input, and print its answer and its attention",
        commands.sample,
        options.sample,
    ),
    "score": Verb(
        "RUN FILE … [--out FILE.tsv] [--json FILE.json] [--step N|best|last] [--code FILE] …",
        "evaluate a trained model on other files: write its answers, and print its metrics if the files have expected "
        "answers",
        score.score,
        options.score,
    ),
    "inspect": Verb(
        "RUN --input TEXT [--step N|best|last] [--other RUN2] [--html FILE.html] [--json FILE.json] [--code FILE]",
        "print statistics of all attention maps of one input (effective rank, entropy, mean attention distance), and "
        "their course over the saved checkpoints, with the variance of attention scores and the gradient norm of each "
        "layer",
        commands.inspect,
        options.inspect,
    ),
    "translate": Verb(
        "RUN [--beam N] [--batch N] [--longer {refuse,truncate}] [--unknown {refuse,skip}] [--code FILE] … < in > out",
        "translate standard input line by line; a line that is blank or refused becomes empty (refused: exit code 3)",
        commands.translate,
        options.translate,
    ),
    "parity": Verb(
        "[NAME …] [--length N] [--peers] [--json [FILE.json]] [--device {cpu,gpu,tpu}] [--code FILE]",
        "compare the parallel, blockwise, token-by-token, padded and vmapped computation of each mechanism in float64, "
        "and measure the error of each precision",
        measure.parity,
        options.parity,
    ),
    "bench": Verb(
        "[NAME …] [--lengths N,…] [--causal|--full] [--peers] [--json [FILE.json]] [--plot FILE.png] [--code FILE] …",
        "measure time and memory and how they grow with length, compared with other libraries and the roofline",
        measure.bench,
        options.bench,
    ),
    "data": Verb(
        "[NAME …]",
        "fetch and verify data sets, and print where they are",
        commands.data,
        options.data,
    ),
}
