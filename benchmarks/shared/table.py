"""The claims of all saved benchmarks as one table in Markdown.

Command: python benchmarks/shared/table.py > TABLE.md

Each script writes `results/NAME.json` with `--save`. The table has a line for each claim: what was measured, what was
expected, and whether the claim is kept, followed by the machines and versions. The docstring of a script says what
bounds a claim that is missed.
"""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "results"
VERSIONS = ("jax", "flax", "torch", "transformers")


def table(folder: Path) -> str:
    """Return the table of the records in a folder. Raises ValueError if there are none."""
    records = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    if not records:
        raise ValueError(f"{folder} has no results; run the scripts of benchmarks/ with --save")
    rows = [
        [name, claim["what"], claim["measured"] or "nothing", claim["expected"], claim["verdict"].lower()]
        for name, record in records.items()
        for claim in record["claims"]
    ]
    machines = [[name, _machine(record["machine"]), _versions(record)] for name, record in records.items()]
    claims = _markdown(["benchmark", "what", "measured", "expected", "verdict"], rows)
    return claims + "\n\n" + _markdown(["benchmark", "machine", "versions"], machines)


def _machine(found: dict) -> str:
    """Describe the processor, its cores and the speed of its matrix products."""
    return f"{found['processor']}, {found['cores']} cores, {found['flops'] / 1e9:.0f} GFLOP/s"


def _versions(record: dict) -> str:
    """List the versions of the libraries that were measured."""
    found = record["machine"] | record.get("versions", {}) | {key: record[key] for key in VERSIONS if key in record}
    return ", ".join(f"{key} {found[key]}" for key in VERSIONS if key in found)


def _markdown(names: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    cells = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in cells)


if __name__ == "__main__":
    print(table(FOLDER))
