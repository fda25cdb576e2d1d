"""Write configurations as JSON and read them back through the registries. Reading executes no code.

A config of a registry is written as `{"registry": "MECHANISMS", "name": "softmax", "fields": {…}}` with all its fields.
A score function is written as `{"registry": "SCORES", "name": "scaled_dot"}`. Any other config (`Experiment`, `Train`)
is a plain object, and a tuple is a list.

A configuration that an older attnlab wrote lacks the fields that were added later. If such a field had another value
then than its default has now, the config class lists that value in `missing_values`. `missing_values` may also be a
function of the written fields.
"""

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar, overload

from attnlab import registry
from attnlab.lab.study.experiment import Experiment
from attnlab.lab.study.values import annotations, fits, members, text, wanted
from attnlab.storage.file_names import as_text
from attnlab.tasks.base.task import Task

Config = TypeVar("Config")
ABSENT = "absent"


def write(config: Any) -> Any:
    """Return a config as a tree that `json` can write.

    Raises:
        ValueError: if a value could not be read back. The message names the field.
    """
    return _write(config, ())


@overload
def read(written: object) -> Experiment: ...
@overload
def read(written: object, kind: type[Config]) -> Config: ...
def read(written: object, kind: type = Experiment) -> object:
    """Read a config back from what `write` returned.

    Args:
        written: the tree. A missing field takes its value from the class's `missing_values`, or else its default.
        kind: the class of the config.

    Returns:
        The config.

    Raises:
        ValueError: in one line with the path, for an unknown name or field, or a value that does not fit.
    """
    config = _read(written, (kind,), ())
    if not isinstance(config, kind):
        raise ValueError(f"configuration: must be an object with the fields of {kind.__name__}")
    return config


def identity(config: Any) -> str:
    """Return the sha256 of a configuration. Configurations with equal fields have equal identities.

    The identity of a tree that an older attnlab wrote does not change, because missing fields are not filled in.

    Args:
        config: a config, or what `write` returned.
    """
    written = write(config) if is_dataclass(config) else config
    canonical = json.dumps(_canonical(written), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def completed(written: object) -> object:
    """Return a written tree with the fields that were added to its classes since it was written.

    A tree that cannot be read is returned unchanged.
    """
    try:
        return write(read(written))
    except (ValueError, NotImplementedError):
        return written


def difference(a: object, b: object) -> list[tuple[str, object, object]]:
    """Return the fields in which two configurations differ.

    Args:
        a: a config, or what `write` returned.
        b: the same.

    Returns:
        (path, value in a, value in b) for each difference, with `ABSENT` for a missing field. If two registered names
        differ, the fields below them are not compared.
    """
    a, b = (write(config) if is_dataclass(config) else config for config in (a, b))
    return list(_differences(a, b, ()))


def _write(value: object, path: tuple[str, ...], kinds: tuple[object, ...] = ()) -> object:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return as_text(value)  # a path is the same in every locale
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


def _write_plain(value: object, path: tuple[str, ...], kinds: tuple[object, ...]) -> dict[str, object]:
    place = registry.home(value, path[-1]) if path else None
    if place:
        name = text(value)
        hint = registry.add_first(place, name.lower(), f"{name}()" if is_dataclass(value) else name)
        raise ValueError(f"{_at(path)}: {name} is not in attnlab.{place}; {hint}")
    # A plain object has no name, so it can be read back only as the class in the field's annotation.
    if not is_dataclass(value) or (path and type(value) not in kinds):
        raise ValueError(f"{_at(path)}: {value!r} cannot be written as JSON and read back")
    return _write_fields(value, path)


def _write_fields(config: Any, path: tuple[str, ...]) -> dict[str, Any]:
    kinds = annotations(type(config))
    return {
        name: _write(getattr(config, name), (*path, name), members(kinds.get(name, object)))
        for name in registry.field_names(config)
    }


def _read(written: object, kinds: tuple[object, ...], path: tuple[str, ...]) -> object:
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
        raise ValueError(f"{_at(path)}: expected an object with registry and name")
    return _read_fields(plain, plain, written, path)


def _pick(written: dict[str, object], path: tuple[str, ...]) -> object:
    place, name = str(written["registry"]), str(written.get("name", ""))
    if place not in registry.PLACES:
        raise ValueError(registry.unknown(f"{_at(path)}: registry {place!r} is not known", place, registry.PLACES))
    try:
        held = registry.pick(registry.table(place), name, _at(path))
    except ValueError as error:
        hint = registry.add_first(place, name)
        how = "on the command line in a Python file given by --code FILE, in Python by an import"
        raise ValueError(f"{error}; if it is your own, {hint} ({how})") from None
    # Written fields replace those of the registered value. Without fields it is the registered value itself.
    whole = "fields" not in written or not is_dataclass(held)
    return held if whole else _read_fields(type(held), held, written["fields"], path)


def _read_fields(kind: type, held: Any, written: object, path: tuple[str, ...]) -> object:
    if not isinstance(written, dict):
        raise ValueError(f"{_at(path)}: the fields of {kind.__name__} must be an object, not {written!r}")
    missing: Any = getattr(kind, "missing_values", {})
    missing = missing(written) if callable(missing) else missing
    values = {name: value for name, value in missing.items() if name not in written}
    for name, inner in written.items():
        if name not in registry.field_names(kind):
            raise ValueError(registry.no_field(kind, name, _at((*path, name))))
        allowed = annotations(kind).get(name, object)
        value = values[name] = _read(inner, members(allowed), (*path, name))
        if not fits(value, allowed):
            raise ValueError(f"{_at((*path, name))}={value!r} must be {wanted(allowed)}")
        if allowed in (Any, object, Task) and not is_dataclass(value) and registry.home(None, name):
            raise ValueError(f"{_at((*path, name))}={value!r} must be an object with registry and name")
    try:
        return kind(**values) if held is kind else replace(held, **values)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{_at(path)}: {error}") from error


def _canonical(written: object) -> object:
    if isinstance(written, dict):
        tag = dict(zip(("registry", "name"), _tag(written) or (), strict=False))
        return {name: _canonical(value) for name, value in (written | tag).items()}
    if isinstance(written, list):
        return [_canonical(value) for value in written]
    # 1 and 1.0 are equal values and must have equal identities.
    return int(written) if isinstance(written, float) and written.is_integer() else written


def _differences(a: Any, b: Any, path: tuple[str, ...]) -> Iterator[tuple[str, object, object]]:
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


def _tag(written: dict[str, object]) -> tuple[str, str] | None:
    """Return (registry, first name) of a tagged config, because one config may be registered under several names."""
    if "registry" not in written:
        return None
    place, name = str(written["registry"]), str(written.get("name", ""))
    held = registry.table(place).get(name) if place in registry.PLACES else None
    return place, (held and registry.first_name(place, held)) or name


def describe(written: object) -> object:
    """Return a short form of a written value: the name of a tagged config, anything else unchanged."""
    return written["name"] if isinstance(written, dict) and "registry" in written else written


def _at(path: tuple[str, ...]) -> str:
    return ".".join(path) or "configuration"
