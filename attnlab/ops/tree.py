"""Frozen dataclasses as pytrees whose types are told apart."""

from dataclasses import field, fields
from typing import Any, TypeVar

import jax
from jax.tree_util import GetAttrKey

Class = TypeVar("Class", bound=type)


def static(**options: Any) -> Any:
    """A field that belongs to the structure of a pytree, and is not traced."""
    return field(metadata={"static": True}, **options)


def pytree(kind: Class) -> Class:
    """Register a dataclass as a pytree: those of its fields that are `static` belong to the structure.

    To `jax.tree_util.register_dataclass` two classes with the same fields are one structure (jax 0.10.2 to 0.12.0):
    a jitted function given a `Causal()` now and then runs what it compiled for a `Full()`.
    """
    data = [field.name for field in fields(kind) if not field.metadata.get("static")]
    static = [field.name for field in fields(kind) if field.metadata.get("static")]

    def flatten(value):
        return [getattr(value, name) for name in data], tuple(getattr(value, name) for name in static)

    def with_keys(value):
        children, structure = flatten(value)
        return [(GetAttrKey(name), child) for name, child in zip(data, children, strict=True)], structure

    def unflatten(structure, children):
        # Past the constructor: what jax puts into a tree need not be an array.
        made = object.__new__(kind)
        for name, value in zip([*data, *static], [*children, *structure], strict=True):
            object.__setattr__(made, name, value)
        return made

    jax.tree_util.register_pytree_with_keys(kind, with_keys, unflatten, flatten)
    return kind
