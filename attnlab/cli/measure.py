"""The commands `attnlab parity` and `attnlab bench`, given their options. Each imports only what it needs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab import registry
from attnlab.cli.commands import user_code
from attnlab.console.tables import print_table
from attnlab.storage.json_file import JsonObject, check_place, encode_json, write_whole
from attnlab.system import compilation_cache, settings, streams

if TYPE_CHECKING:
    from rich.table import Table

    from attnlab.mechanisms.checked import CheckedMechanism


def parity(options: argparse.Namespace) -> int:
    """Compare all forms and precisions of the mechanisms, and report any limit that is exceeded."""
    from attnlab.system.device import use

    user_code(options)
    chosen, length = _mechanisms(options.names), _whole("--length", options.length or "4096")
    _check("--json", options.json)
    if options.peers and options.length is not None:
        raise ValueError(f"--length {options.length} does not apply to --peers, whose sequences have one length")
    use(options.device)
    settings.check()
    compilation_cache.ignore_failures()
    if options.peers:
        return _parity_with_peers(options)
    from attnlab.bench.parity import lengths_to, record, verdict
    from attnlab.bench.parity import parity as measure
    from attnlab.bench.parity_table import parity_table
    from attnlab.lab.execution.progress import choose

    progress, lengths = choose(), lengths_to(length)
    try:
        found = list(measure(chosen, lengths, progress.note))
    finally:
        progress.close()
    _tell(options.json, record(found, lengths), parity_table(found, lengths))
    if broken := verdict(found):
        print(f"attnlab: error: {broken}", file=sys.stderr)
    return 5 if broken else 0


def _parity_with_peers(options: argparse.Namespace) -> int:
    """Compare mechanisms with functions of other libraries, and report any limit that is exceeded."""
    from attnlab.bench.peer_parity import functions
    from attnlab.bench.peer_parity.comparison import compare
    from attnlab.bench.peer_parity.table import peer_tables, record, verdict
    from attnlab.lab.execution.progress import choose

    chosen, missing = functions.choose(options.names, functions.FUNCTIONS)
    if missing:
        print(f"attnlab: skipped, not installed: {', '.join(missing)}; {functions.INSTALL}", file=sys.stderr)
    progress = choose()
    try:
        found = list(compare(chosen, progress.note))
    finally:
        progress.close()
    _tell(options.json, record(found), *peer_tables(found))
    if broken := verdict(found):
        print(f"attnlab: error: {broken}", file=sys.stderr)
    return 5 if broken else 0


def bench(options: argparse.Namespace) -> int:
    """Measure time and memory as sequences grow, compared with what this machine could reach."""
    from attnlab.system.device import use

    heads, width, repeat = (_whole(f"--{name}", getattr(options, name)) for name in ("heads", "width", "repeat"))
    lengths = sorted({_whole("--lengths", part) for part in options.lengths.split(",")})
    for option in ("json", "plot"):
        _check(f"--{option}", getattr(options, option))
    if options.plot is not None and options.plot.suffix != ".png":
        raise ValueError(f"--plot {options.plot} must end in .png")
    masks = ("causal",) if options.causal else ("full",) if options.full else ("full", "causal")
    user_code(options)
    chosen = _mechanisms(options.names)
    use(options.device)
    settings.check()
    compilation_cache.ignore_failures()
    from attnlab.analysis.measure import machine
    from attnlab.bench.measuring import BenchConfig, record
    from attnlab.bench.measuring import bench as measure
    from attnlab.bench.peers import PEERS
    from attnlab.bench.table import tables
    from attnlab.lab.execution.progress import choose

    plan = BenchConfig(chosen, lengths, heads, width, masks, repeat=repeat, peers=options.peers)
    if options.peers:
        skipped = {peer.package: peer.version for peer in PEERS.values() if not peer.here}
        missing = sorted(package for package, version in skipped.items() if version is None)
        unsupported = sorted(package for package, version in skipped.items() if version is not None)
        if missing:
            install = "pip install .[peers] in a checkout installs them"
            print(f"attnlab: skipped, not installed: {', '.join(missing)}; {install}", file=sys.stderr)
        if unsupported:
            print(f"attnlab: skipped, not supported on this device: {', '.join(unsupported)}", file=sys.stderr)
    progress = choose()
    try:
        here = machine()
        found = list(measure(plan, progress.note))
    finally:
        progress.close()
    _tell(options.json, record(plan, found, here), *tables(found, here))
    if options.plot is not None:
        from attnlab.bench.plot import draw

        draw(found, here, options.plot)
    return 0


def _mechanisms(names: list[str]) -> dict[str, CheckedMechanism]:
    """Return the mechanisms with these names, or all of them if there are no names."""
    known = registry.table("MECHANISMS")
    return {name: registry.pick(known, name, "mechanism") for name in names or known}


def _whole(option: str, text: str, most: int = 2**24) -> int:
    """Parse a whole number between 1 and `most`."""
    # Python refuses to convert very long digit strings, and such a number is too large anyway.
    if not text.isdecimal() or len(text) > 100 or not 1 <= int(text) <= most:
        raise ValueError(f"{option} {text[:100]!r} must be a whole number between 1 and {most}")
    return int(text)


def _check(option: str, file: Path | None) -> None:
    """Check, before minutes of measuring, that the output file of an option can be written."""
    if file is None or str(file) == "-":
        return
    if option == "--json" and file.suffix != ".json" and not file.is_dir():
        # Otherwise a mechanism's name after the option would be taken for a file name.
        raise ValueError(f"--json {file} must end in .json; name the mechanisms before the options")
    check_place(option, file)


def _tell(file: Path | None, record: JsonObject, *tables: Table) -> None:
    """Print the tables and write the record to the file. With "-", only the record goes to standard output."""
    for table in tables:
        print_table(table, sys.stderr if str(file) == "-" else None)
    if str(file) == "-":
        streams.write(encode_json(record, indent=1) + b"\n")
    elif file is not None:
        write_whole(file, encode_json(record, indent=1) + b"\n")
