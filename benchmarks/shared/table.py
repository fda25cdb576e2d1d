"""The claims of all saved benchmarks as one table in Markdown.

Command: python benchmarks/shared/table.py > TABLE.md

Each script writes `results/NAME.json` with `--save`. The table has a line for each claim: what was measured, its
quartiles, how near ours comes to the roofline, what was expected, and whether the claim is kept. A second table has the
machines and versions. What bounds the scripts that miss a claim follows, from their docstrings.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "results"
VERSIONS = ("jax", "flax", "torch", "transformers")


def table(folder: Path, scripts: Path) -> str:
    """Return the tables of the records in a folder, and what bounds missed claims.

    Args:
        folder: The folder of the records.
        scripts: The folder of the scripts that wrote them.

    Raises:
        ValueError: There are no records, or one is of an older version.
    """
    records = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    if not records:
        raise ValueError(f"{folder} has no results; run the scripts of benchmarks/ with --save")
    for name, record in records.items():
        if "machine" not in record or not all(isinstance(each, dict) for each in record.get("claims", [None])):
            raise ValueError(f"{folder / name}.json is of an older version; run benchmarks/{name}.py again with --save")
    rows = [
        [
            name,
            claim["what"],
            claim["measured"] or "nothing",
            claim.get("spread", ""),
            claim.get("roofline", ""),
            claim["expected"],
            claim["verdict"].lower(),
        ]
        for name, record in records.items()
        for claim in record["claims"]
    ]
    machines = [[name, _machine(record["machine"]), _versions(record)] for name, record in records.items()]
    names = ["benchmark", "what", "measured", "quartiles", "ours, of the roofline", "expected", "verdict"]
    claims = _markdown(names, rows)
    missed = [name for name, record in records.items() if any(x["verdict"] == "MISSED" for x in record["claims"])]
    bounds = [f"**{name}**: {bound}" for name in missed if (bound := what_bounds(scripts / f"{name}.py"))]
    return "\n\n".join([claims, _markdown(["benchmark", "machine", "versions"], machines), *bounds])


def what_bounds(script: Path) -> str:
    """Return the end of a script's docstring, from "What bounds it" on, or an empty text if it has none."""
    document = (ast.get_docstring(ast.parse(script.read_text())) or "") if script.exists() else ""
    _, found, end = document.partition("What bounds it")
    return found + end


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
    print(table(FOLDER, FOLDER.parent))
