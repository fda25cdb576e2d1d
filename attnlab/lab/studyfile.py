"""What a study says of all its variants, beside their folders: `OUT/<experiment>/study.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.lab import jsonfile
from attnlab.lab.jsonfile import Fields, FolderError
from attnlab.lab.study import Study

FIELDS: Fields = {"question": str, "variants": list, "published": dict, "bands": dict, "against": dict}


def keep(home: Path, study: Study, quick: bool = False) -> list[str]:
    """Write down what the study says now; the answer is what a person should know of it, a line each.

    A run of some of its variants leaves all in their places; variants that it no longer has stand behind the others.
    Of a glimpse nothing that was published is kept. Raises FolderError for a file that cannot be read or written.
    """
    before, names = _read(home), list(study.vary.variants if study.vary else ("base",))
    known = before.get("variants", [])
    some = set(names) < set(known)
    told = {
        "question": study.question,
        "margin": study.margin,
        "variants": known if some else [*names, *(name for name in known if name not in names)],
        "against": {**before.get("against", {}), **study.against} if some else study.against,
        **{
            field: {name: value for name, value in before.get(field, {}).items() if quick or name not in names}
            | ({} if quick else getattr(study, field))
            for field in ("published", "bands")
        },
    }
    if told != before:
        jsonfile.write_whole(home / "study.json", jsonfile.sealed(told, indent=1))
    if before and before["margin"] != study.margin:
        return [f"the margin was {before['margin']} and is {study.margin} now: verdicts go by the new one"]
    return []


def said(home: Path) -> dict[str, dict[str, Any]]:
    """What is said of each variant: its order, margin, question, published, band and against.

    Empty where there is no such file. Raises FolderError for one that cannot be read.
    """
    found = _read(home)
    return {
        name: {
            "order": order,
            "margin": found["margin"],
            "question": found["question"],
            "published": found["published"].get(name),
            "band": found["bands"].get(name),
            "against": found["against"].get(name),
        }
        for order, name in enumerate(found.get("variants", []))
    }


def _read(home: Path) -> dict[str, Any]:
    path = Path(home) / "study.json"
    kept = jsonfile.content(path)
    if kept is None:
        return {}
    found = jsonfile.unsealed(kept, FIELDS, str(path))
    if not all(isinstance(name, str) for name in found["variants"]):
        raise FolderError(f"{path}: the field 'variants' must list names")
    return {"margin": None, **found}
