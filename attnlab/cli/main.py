"""The entry point of the command line, `attnlab COMMAND …`.

Every error is one line on stderr. `EXITS` explains the exit codes. Nothing heavy is imported before a command runs, so
that `attnlab --help` is fast.
"""

import codecs
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from textwrap import fill

from attnlab import registry
from attnlab.cli.verbs import VERBS
from attnlab.console.errors import explain
from attnlab.console.escape import plain
from attnlab.system import streams
from attnlab.system.signals import Interrupted

EXITS = """exit codes: 0 success; 1 internal error; 2 usage or configuration; 3 data;
4 run folder, checkpoint or disk; 5 divergence, or an exceeded limit (parity); above 128 stopped by a signal"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: The arguments, `sys.argv[1:]` by default.

    Returns:
        The exit code.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in arguments or os.environ.get("ATTNLAB_DEBUG", "0") not in ("", "0")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An ASCII locale says nothing about the terminal, and Python uses UTF-8 there unless settings forbid it.
        utf8 = codecs.lookup(sys.stdout.encoding).name == "ascii" and "PYTHONIOENCODING" not in os.environ
        # A character that the terminal cannot encode becomes a question mark instead of an error.
        sys.stdout.reconfigure(encoding="utf-8" if utf8 else None, errors="replace")
    try:
        code = _flushed(arguments)
    except BrokenPipeError:
        return 141
    except KeyboardInterrupt:
        print("attnlab: interrupted", file=sys.stderr)
        return 130
    except (Exception, Interrupted) as error:
        if debug:
            import traceback

            traceback.print_exception(error)
        line, code = explain(error)
        if variant := vars(error).get("variant"):  # the line of this error was printed by a worker process
            line = plain(f"attnlab: error: variant {variant} failed; see above")
        print(line, file=sys.stderr)
    return code


def _flushed(arguments: list[str]) -> int:
    """Run `dispatch` and flush standard output. Errors of standard output are raised as in `streams.flush`."""
    try:
        code = dispatch(arguments)
    except OSError:
        streams.flush()  # if standard output failed, this raises the error to report
        raise
    except BaseException:
        # The original error matters more than a failure to write what was printed before it.
        with suppress(OSError, streams.OutputError):
            streams.flush()
        raise
    # An error while flushing at exit could not be caught.
    streams.flush()
    return code


def dispatch(arguments: list[str]) -> int:
    """Handle the global options, then run the command with the remaining arguments."""
    rest = [argument for argument in arguments if argument != "--debug"]
    if not rest:
        print(usage())
        return 2
    first, *others = rest
    if first in ("-h", "--help", "help"):
        print(usage())
        return 0
    if first == "--version":
        from attnlab import __version__

        print(f"attnlab {__version__}")
        return 0
    if first.startswith("-"):
        raise ValueError(registry.unknown(f"unknown option {first}", first, ["--help", "--version", "--debug"]))
    if first not in VERBS:
        raise ValueError(registry.unknown(f"unknown command {first!r}", first, VERBS))
    return VERBS[first].run(others, f"attnlab {first}")


def usage() -> str:
    """Return the help text of `attnlab`."""
    wide = max(map(len, VERBS))
    left = " " * (wide + 6)
    about = {name: fill(verb.does, 120, initial_indent=left, subsequent_indent=left) for name, verb in VERBS.items()}
    lines = [f"  {name:<{wide}}  {verb.takes}\n{about[name]}" for name, verb in VERBS.items()]
    return "\n".join(
        [
            "attnlab: a laboratory for attention",
            "",
            "usage: attnlab [--help] [--version] [--debug] COMMAND …",
            "",
            *lines,
            "",
            "'attnlab COMMAND --help' lists the options of a command.",
            EXITS,
        ]
    )
