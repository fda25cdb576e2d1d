"""Configurations as data: a tree of configs to JSON and back through the registries; nothing is executed.

A config of a registry is written `{"registry": "MECHANISMS", "name": "softmax", "fields": {…}}` with all its
fields, a score function `{"registry": "SCORES", "name": "scaled_dot"}`, any other config (`Experiment`,
`Train`) as a plain object, a tuple as a list.

A configuration of an older attnlab lacks the fields that were added later. A config class names in `missing_values`
what such a field has there, where that is not its default of today; a function of the written fields may say it.
"""

import hashlib
import json
import math
from dataclasses import is_dataclass, replace
from typing import Any

from attnlab import registry
from attnlab.lab.study.study import Experiment
from attnlab.lab.study.values import annotations, fits, members, text, wanted

ABSENT = "absent"


def write(config: Any) -> Any:
    """A config as what `json` can write.

    Raises ValueError naming the field whose value could not be read back.
    """
    return _write(config, ())


def read(written: Any, kind: type = Experiment) -> Any:
    """The config of class `kind` that was written.

    A field that it leaves out has its value in the class's `missing_values`, else its default.

    Raises ValueError, in one line with the path, for an unknown name or field and for values that do not fit.
    """
    config = _read(written, (kind,), ())
    if not isinstance(config, kind):
        raise ValueError(f"configuration: must be an object with the fields of {kind.__name__}")
    return config


def identity(config: Any) -> str:
    """The sha256 of a configuration: equal where all fields are. Takes a config, or what `write` gave.

    What an older attnlab wrote keeps the identity that it had then.
    """
    written = write(config) if is_dataclass(config) else config
    canonical = json.dumps(_canonical(written), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def completed(written: Any) -> Any:
    """What `write` gave, with the fields that were added since; unchanged where it cannot be read."""
    try:
        return write(read(written))
    except (ValueError, NotImplementedError):
        return written


def difference(a: Any, b: Any) -> list[tuple[str, Any, Any]]:
    """The fields in which two configurations differ, as (path, a's, b's); `ABSENT` where one has none.

    Takes configs, or what `write` gave. Where two names differ, their fields are not compared one by one.
    """
    a, b = (write(config) if is_dataclass(config) else config for config in (a, b))
    return list(_differences(a, b, ()))


def _write(value: Any, path: tuple[str, ...], kinds: tuple[Any, ...] = ()) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        # JSON has no infinity and no NaN.
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, tuple):
        return [_write(entry, path) for entry in value]
    if found := registry.find(value):
        place, name = found
        tag = {"registry": place, "name": name}
        return tag | {"fields": _write_fields(value, path)} if is_dataclass(value) else tag
    return _write_plain(value, path, kinds)


def _write_plain(value: Any, path: tuple[str, ...], kinds: tuple[Any, ...]) -> dict[str, Any]:
    place = registry.home(value, path[-1]) if path else None
    if place:
        name = text(value)
        hint = registry.add_first(place, name.lower(), f"{name}()" if is_dataclass(value) else name)
        raise ValueError(f"{_at(path)}: {name} is not in attnlab.{place}; {hint}")
    # Without a name, only the field's annotation tells what to read it back as.
    if not is_dataclass(value) or (path and type(value) not in kinds):
        raise ValueError(f"{_at(path)}: {value!r} cannot be written as JSON and read back")
    return _write_fields(value, path)


def _write_fields(config: Any, path: tuple[str, ...]) -> dict[str, Any]:
    kinds = annotations(type(config))
    return {
        name: _write(getattr(config, name), (*path, name), members(kinds.get(name, Any)))
        for name in registry.field_names(config)
    }


def _read(written: Any, kinds: tuple[Any, ...], path: tuple[str, ...]) -> Any:
    if isinstance(written, list):
        return tuple(_read(entry, (), path) for entry in written)
    if not isinstance(written, dict):
        return written
    if set(written) == {"float"} and written["float"] in ("inf", "-inf", "nan"):
        return float(written["float"])
    if "registry" in written:
        return _pick(written, path)
    plain = next((kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind)), None)
    if plain is None or (path and registry.home(None, path[-1], kinds)):
        raise ValueError(f"{_at(path)}: an object that says no registry and no name")
    return _read_fields(plain, plain, written, path)


def _pick(written: dict[str, Any], path: tuple[str, ...]) -> Any:
    place, name = str(written["registry"]), str(written.get("name", ""))
    if place not in registry.PLACES:
        raise ValueError(registry.unknown(f"{_at(path)}: registry {place!r} is not known", place, registry.PLACES))
    try:
        held = registry.pick(registry.table(place), name, _at(path))
    except ValueError as error:
        hint = registry.add_first(place, name)
        where = "in a shell, --code FILE runs a Python file that does; in Python, import it"
        raise ValueError(f"{error}; one's own: {hint} ({where})") from None
    # What is written replaces the fields of the registered value, so one without fields is that value itself.
    whole = "fields" not in written or not is_dataclass(held)
    return held if whole else _read_fields(type(held), held, written["fields"], path)


def _read_fields(kind: type, held: Any, written: Any, path: tuple[str, ...]) -> Any:
    if not isinstance(written, dict):
        raise ValueError(f"{_at(path)}: the fields of {kind.__name__} must be an object, not {written!r}")
    missing: Any = getattr(kind, "missing_values", {})
    missing = missing(written) if callable(missing) else missing
    values = {name: value for name, value in missing.items() if name not in written}
    for name, inner in written.items():
        if name not in registry.field_names(kind):
            raise ValueError(registry.no_field(kind, name, _at((*path, name))))
        allowed = annotations(kind).get(name, Any)
        value = values[name] = _read(inner, members(allowed), (*path, name))
        if not fits(value, allowed):
            raise ValueError(f"{_at((*path, name))}={value!r} must be {wanted(allowed)}")
        if allowed in (Any, object) and not is_dataclass(value) and registry.home(None, name):
            raise ValueError(f"{_at((*path, name))}={value!r} must be an object with registry and name")
    try:
        return kind(**values) if held is kind else replace(held, **values)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{_at(path)}: {error}") from error


def _canonical(written: Any) -> Any:
    if isinstance(written, dict):
        tag = dict(zip(("registry", "name"), _tag(written) or (), strict=False))
        return {name: _canonical(value) for name, value in (written | tag).items()}
    if isinstance(written, list):
        return [_canonical(value) for value in written]
    # 1 and 1.0 are equal as fields, and must be as digits.
    return int(written) if isinstance(written, float) and written.is_integer() else written


def _differences(a: Any, b: Any, path: tuple[str, ...]):
    if isinstance(a, dict) and isinstance(b, dict):
        if _tag(a) != _tag(b):
            yield _at(path), describe(a), describe(b)
            return
        if "registry" in a:
            a, b = a.get("fields", {}), b.get("fields", {})
        for name in dict.fromkeys((*a, *b)):
            yield from _differences(a.get(name, ABSENT), b.get(name, ABSENT), (*path, name))
    elif a != b:
        yield _at(path), describe(a), describe(b)


def _tag(written: dict[str, Any]) -> tuple[str, str] | None:
    """What tells two tagged configs apart before their fields: one class may have several names."""
    if "registry" not in written:
        return None
    place, name = str(written["registry"]), str(written.get("name", ""))
    held = registry.table(place).get(name) if place in registry.PLACES else None
    return place, (held and registry.first_name(place, held)) or name


def describe(written: Any) -> Any:
    """What was written, short: a tagged config's name, anything else as it is."""
    return written["name"] if isinstance(written, dict) and "registry" in written else written


def _at(path: tuple[str, ...]) -> str:
    return ".".join(path) or "configuration"
