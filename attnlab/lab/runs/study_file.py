"""The file that describes all variants of a study, next to their folders: `OUT/<experiment>/study.json`."""

from __future__ import annotations

from pathlib import Path

from attnlab.lab.runs.run_folder import JsonObject
from attnlab.lab.study import serialize
from attnlab.lab.study.study import Study
from attnlab.storage import json_file
from attnlab.storage.json_file import Fields, FolderError
from attnlab.tasks.base.task import Task

FIELDS: Fields = {"question": str, "variants": list, "published": dict, "bands": dict, "against": dict}


def write_study_file(home: Path, study: Study, quick: bool = False, fresh: bool = False) -> list[str]:
    """Write `study.json` for a study as it is now.

    A study with only some of its variants keeps the entries of all others. Variants that overrides created come after
    them (`added`). A variant that the study no longer has is left out. If overrides change the task, all variants have
    that task, and those that only the file has are left out unless they have a folder. A preview neither adds nor
    removes published values and bands.

    Args:
        home: the folder of the study.
        study: the study.
        quick: whether the run is a preview.
        fresh: whether to replace a file that cannot be read.

    Returns:
        Notes for a person, one line each: variants that were dropped, and changes of the margin or of the comparisons.

    Raises:
        FolderError: if the file cannot be read (unless `fresh`) or written.
    """
    whole = study.part_of or study
    try:
        before = _read(home)
    except FolderError as error:
        if not fresh:
            # After an OSError, for example a missing permission, removing the file would not help.
            remedy = "; remove only that file, and the next run writes it again"
            hint = "" if isinstance(error.__cause__, OSError) else remedy
            raise FolderError(f"{error}{hint}") from error
        before = {}
    # The study of the file differs from the whole study if overrides change the task.
    file, run = whole.part_of or whole, _names(study)
    planned = whole.variants() | study.variants()
    names = [name for name in _names(file) if name in planned or (home / name).is_dir()]
    added = [name for name in dict.fromkeys([*before.get("added", []), *planned]) if name not in _names(file)]
    content = {
        "question": study.question,
        "margin": study.margin,
        "variants": [*names, *added],
        "added": added,
        "comparable_part": {
            **{name: before.get("comparable_part", {}).get(name) for name in added},
            **{name: comparable_part((file.variants() | planned)[name].task) for name in [*names, *planned]},
        },
        "against": {name: other for name, other in (file.named | whole.named).items() if name in names},
        **({"all_pairs": True} if study.against == "all" else {}),
        **{
            field: {name: value for name, value in before.get(field, {}).items() if quick or name not in run}
            | ({} if quick else getattr(study, field))
            for field in ("published", "bands")
        },
    }
    if content != before:
        json_file.write_whole(home / "study.json", json_file.dump_with_checksum(content, indent=1))
    notes = [
        f"{name} is no longer a variant of this study; its results in {home / name} are not compared"
        for name in before.get("variants", [])
        if name not in content["variants"] and (home / name).is_dir()
    ]
    if before and before["margin"] != study.margin:
        notes.append(f"the margin was {before['margin']} and is {study.margin} now; verdicts use the new one")
    if before and before.get("all_pairs", False) != (study.against == "all"):
        notes.append("the study compares other pairs of variants than before; verdicts are corrected for the new pairs")
    return notes


def comparable_part(task: Task) -> JsonObject:
    """Return a task as written, without the fields that concern only training. Equal parts make runs comparable."""
    written = serialize.write(task)
    return written | {
        "fields": {name: value for name, value in written["fields"].items() if name not in task.training_only_fields}
    }


def _names(study: Study) -> list[str]:
    """Return the names of a study's variants."""
    return list(study.vary.variants) if study.vary else ["base"]


def read_study_file(home: Path) -> dict[str, JsonObject]:
    """Read what `study.json` records of each variant.

    Args:
        home: the folder of the study.

    Returns:
        For each variant {"order", "comparable_part", "margin", "question", "published", "band", "against"}, and
        "all_pairs" if the study compares all pairs. Empty if the file does not exist.

    Raises:
        FolderError: if the file cannot be read.
    """
    found = _read(home)
    return {
        name: {
            "order": order,
            "comparable_part": found.get("comparable_part", {}).get(name),
            "margin": found["margin"],
            "question": found["question"],
            "published": found["published"].get(name),
            "band": found["bands"].get(name),
            "against": found["against"].get(name),
            **({"all_pairs": True} if found.get("all_pairs") is True else {}),
        }
        for order, name in enumerate(found.get("variants", []))
    }


def _read(home: Path) -> JsonObject:
    path = Path(home) / "study.json"
    kept = json_file.content(path)
    if kept is None:
        return {}
    found = json_file.load_with_checksum(kept, FIELDS, str(path))
    if not all(isinstance(name, str) for name in found["variants"]):
        raise FolderError(f"{path}: the field 'variants' must be a list of names")
    return {"margin": None, **found}
