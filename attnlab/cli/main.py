"""The door: `attnlab VERB …`. Every refusal is one line on stderr; `EXITS` says what the exit codes mean.

Nothing heavy is imported before a verb runs: `attnlab --help` answers at once.
"""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from attnlab import registry
from attnlab.cli.options import VERBS
from attnlab.console.errors import explain
from attnlab.console.escape import plain
from attnlab.system import streams
from attnlab.system.signals import Interrupted

EXITS = """exit codes: 0 good; 1 internal error; 2 usage or configuration; 3 data;
4 run folder, checkpoint or disk; 5 numbers diverged, or broke a limit (parity); above 128 stopped by a signal"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in arguments or os.environ.get("ATTNLAB_DEBUG", "0") not in ("", "0")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What a terminal cannot show becomes a question mark, not an error.
        sys.stdout.reconfigure(errors="replace")
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
        if variant := getattr(error, "variant", None):
            line = plain(f"attnlab: error: variant {variant} failed: see above")
        print(line, file=sys.stderr)
    return code


def _flushed(arguments: list[str]) -> int:
    """`dispatch`, and all that it printed written. Raises as `streams.flush`, whoever met it first."""
    try:
        code = dispatch(arguments)
    except OSError:
        streams.flush()  # where it was standard output that failed, that is the error
        raise
    except BaseException:
        # The error is the news, and not that what was printed before it could not be.
        with suppress(OSError, streams.OutputError):
            streams.flush()
        raise
    # Not at exit, where nothing could be caught.
    streams.flush()
    return code


def dispatch(arguments: list[str]) -> int:
    """Options of the whole first, then a verb and what belongs to it."""
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
    """The help of the whole."""
    wide = max(map(len, VERBS))
    lines = [f"  {name:<{wide}}  {verb.takes}\n  {'':<{wide}}    {verb.does}" for name, verb in VERBS.items()]
    return "\n".join(
        [
            "attnlab: a laboratory for attention",
            "",
            "usage: attnlab [--help] [--version] [--debug] COMMAND …",
            "",
            *lines,
            "",
            "attnlab COMMAND --help explains one.",
            EXITS,
        ]
    )
