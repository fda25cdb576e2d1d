"""The section of the page that describes how the runs were made, with all that is needed to reproduce them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from attnlab.console.format import NONE
from attnlab.lab.reporting.layout import details, scroll, section
from attnlab.lab.reporting.markup import Markup, name, tag
from attnlab.lab.results.outcome import Outcome
from attnlab.lab.runs.environment_history import changes_in_words
from attnlab.lab.runs.run_folder import Record
from attnlab.lab.study.values import text

# Descriptions of the values in `experiment.json` that say how variants were matched.
MATCHED = {"parameters": "parameters", "flops": "the FLOPs of a training step", "state": "decoding state"}
SPENT = {"flops": "FLOPs", "seconds": "seconds"}


def provenance(found: list[Outcome]) -> Markup:
    """Return how variants were matched, and, collapsed, their configuration, commands, versions and data."""
    parts = [
        _agreed(found),
        details("What varies", _varying(found)),
        details("Commands", [tag("pre", tag("code", command)) for command in _commands(found)]),
        details("Machine and versions", _facts(found, [changes_in_words(o.environment) for o in found])),
        details("Data fingerprints", _facts(found, [_fingerprint(o) for o in found])),
        [details(["Configuration of ", name(o.name)], _listing(o.experiment.get("experiment"))) for o in found],
    ]
    return section("How the runs were made", *parts)


def _agreed(found: list[Outcome]) -> Markup | None:
    """Describe how the variants were matched and their budget. Returns None if the budget is only a number of steps."""
    recorded = [outcome.experiment for outcome in found if "match" in outcome.experiment]
    match, budget = (_common(recorded, field, words) for field, words in (("match", MATCHED), ("budget", SPENT)))
    sentences = [f"The variants have equal {match}, within 2%."] if match else []
    sentences += (
        [f"Each variant is trained for the {budget} of the base, with the number of steps that this allows."]
        if budget
        else []
    )
    return tag("p", " ".join(sentences)) if sentences else None


def _common(experiments: list[Record], field: str, words: dict[str, str]) -> str | None:
    """Describe the value of a field that all share. Returns None if they differ or the value has no description."""
    values = {str(each.get(field)) for each in experiments}
    return words.get(values.pop()) if len(values) == 1 else None


def _varying(found: list[Outcome]) -> Markup | None:
    found = [outcome for outcome in found if outcome.experiment.get("experiment")]
    flat = [dict(_fields(outcome.experiment["experiment"], ())) for outcome in found]
    paths = dict.fromkeys(path for config in flat for path in config)
    differing = [path for path in paths if any(config.get(path) != flat[0].get(path) for config in flat)]
    values = [{path: config.get(path, NONE) for path in differing} for config in flat]
    return _facts(found, values, everywhere=True) if differing else None


def _fields(config: object, path: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Yield the fields of a configuration by dotted path. A registered value yields its name, then its own fields."""
    if not isinstance(config, dict):
        yield ".".join(path), config
        return
    if "registry" in config:
        yield ".".join(path), config.get("name")
        fields = config.get("fields")
        config = fields if isinstance(fields, dict) else {}
    for key, value in config.items():
        yield from _fields(value, (*path, key))


def _commands(found: list[Outcome]) -> list[str]:
    return list(dict.fromkeys(str(o.experiment["command"]) for o in found if o.experiment.get("command")))


def _fingerprint(outcome: Outcome) -> dict[str, object]:
    value = (outcome.result or {}).get("fingerprint")
    return {"sha256": value} if value else {}


def _facts(found: list[Outcome], facts: Sequence[Mapping[str, object]], everywhere: bool = False) -> Markup | None:
    """Return a table of facts: one column if all variants agree, else a row for each variant."""
    kept = [(outcome, fact) for outcome, fact in zip(found, facts, strict=True) if fact]
    if not kept:
        return None
    if not everywhere and all(fact == kept[0][1] for _, fact in kept):
        facts_of_all = kept[0][1].items()
        rows = [tag("tr", tag("th", key, scope="row"), tag("td", _said(value))) for key, value in facts_of_all]
        return tag("table", tag("tbody", rows), class_="facts")
    keys = dict.fromkeys(key for _, fact in kept for key in fact)
    head = tag("tr", tag("th", "variant", scope="col"), [tag("th", key, scope="col") for key in keys])
    rows = [
        tag("tr", tag("th", name(o.name), scope="row"), [tag("td", _said(fact.get(key, NONE))) for key in keys])
        for o, fact in kept
    ]
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="facts")
    return scroll(table, "By variant")


def _said(value: object) -> str:
    """Format a value as the command line reads it, or as JSON if the command line cannot read such a value."""
    if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
        return text(tuple(value))
    if value is None or isinstance(value, str | int | float):
        return text(value)
    return json.dumps(value, ensure_ascii=False)


def _listing(config: object) -> Markup | None:
    """List the fields, one line each, by the path that the command line uses."""
    lines = [f"{path}={_said(value)}" for path, value in _fields(config, ())] if config else []
    return tag("pre", tag("code", "\n".join(lines))) if lines else None
