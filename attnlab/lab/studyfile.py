"""What a study says of all its variants, beside their folders: `OUT/<experiment>/study.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.lab import configuration, jsonfile
from attnlab.lab.jsonfile import Fields, FolderError
from attnlab.lab.study import Study
from attnlab.tasks.base import Task

FIELDS: Fields = {"question": str, "variants": list, "published": dict, "bands": dict, "against": dict}


def keep(home: Path, study: Study, quick: bool = False, fresh: bool = False) -> list[str]:
    """Write down what the study says now; the answer is what a person should know of it, a line each.

    A run of some of its variants leaves all in their places, and those that were made by setting a field behind them
    (`added`); a variant that the study no longer has is left out. A glimpse adds nothing that was published, and
    drops nothing. `fresh` does without a file that cannot be read. Raises FolderError for one, and for one that cannot
    be written.
    """
    whole = study.part_of or study
    try:
        before = _read(home)
    except FolderError as error:
        if not fresh:
            # What the system does not let us read would not be written either.
            mended = "; remove that file alone, and the next run writes it anew"
            hint = "" if isinstance(error.__cause__, OSError) else mended
            raise FolderError(f"{error}{hint}") from error
        before = {}
    names, run = _names(whole), _names(study)
    added = [name for name in dict.fromkeys([*before.get("added", []), *run]) if name not in names]
    told = {
        "question": study.question,
        "margin": study.margin,
        "variants": [*names, *added],
        "added": added,
        "asked": {
            **{name: before.get("asked", {}).get(name) for name in added},
            **{name: asked(one.task) for name, one in (whole.variants() | study.variants()).items()},
        },
        "against": whole.named,
        **({"all_pairs": True} if study.against == "all" else {}),
        **{
            field: {name: value for name, value in before.get(field, {}).items() if quick or name not in run}
            | ({} if quick else getattr(study, field))
            for field in ("published", "bands")
        },
    }
    if told != before:
        jsonfile.write_whole(home / "study.json", jsonfile.sealed(told, indent=1))
    notes = [
        f"{name} is no variant of this study any more: what it left in {home / name} is not compared"
        for name in before.get("variants", [])
        if name not in told["variants"] and (home / name).is_dir()
    ]
    if before and before["margin"] != study.margin:
        notes.append(f"the margin was {before['margin']} and is {study.margin} now: verdicts go by the new one")
    if before and before.get("all_pairs", False) != (study.against == "all"):
        notes.append("the study compares other pairs of variants than before: verdicts are corrected for those")
    return notes


def asked(task: Task) -> dict[str, Any]:
    """What a task asks: itself, without how it is taught."""
    written = configuration.write(task)
    return written | {"fields": {name: value for name, value in written["fields"].items() if name not in task.teaching}}


def _names(study: Study) -> list[str]:
    return list(study.vary.variants) if study.vary else ["base"]


def said(home: Path) -> dict[str, dict[str, Any]]:
    """What is said of each variant: its order, what it is asked, margin, question, published, band and against.

    Where the study compares all pairs of variants, each also has "all_pairs".

    Empty where there is no such file. Raises FolderError for one that cannot be read.
    """
    found = _read(home)
    return {
        name: {
            "order": order,
            "asked": found.get("asked", {}).get(name),
            "margin": found["margin"],
            "question": found["question"],
            "published": found["published"].get(name),
            "band": found["bands"].get(name),
            "against": found["against"].get(name),
            **({"all_pairs": True} if found.get("all_pairs") is True else {}),
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
