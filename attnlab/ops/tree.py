"""Registers frozen dataclasses as pytrees, such that different classes are different structures."""

from dataclasses import field, fields
from typing import Any, TypeVar

import jax
from jax.tree_util import GetAttrKey

Class = TypeVar("Class", bound=type)


def static(**options: Any) -> Any:
    """Declares a field that belongs to the structure of a pytree and is not traced."""
    return field(metadata={"static": True}, **options)


def pytree(kind: Class) -> Class:
    """Registers a dataclass as a pytree; its `static` fields belong to the structure.

    `jax.tree_util.register_dataclass` treats two classes with the same fields as one structure (jax 0.10.2 to 0.12.0).
    A jitted function that was compiled for a `Full()` would then also run for a `Causal()`.
    """
    data = [field.name for field in fields(kind) if not field.metadata.get("static")]
    static = [field.name for field in fields(kind) if field.metadata.get("static")]

    def flatten(value):
        return [getattr(value, name) for name in data], tuple(getattr(value, name) for name in static)

    def with_keys(value):
        children, structure = flatten(value)
        return [(GetAttrKey(name), child) for name, child in zip(data, children, strict=True)], structure

    def unflatten(structure, children):
        # Bypass the constructor and its checks, because jax also puts objects other than arrays into a tree.
        made = object.__new__(kind)
        for name, value in zip([*data, *static], [*children, *structure], strict=True):
            object.__setattr__(made, name, value)
        return made

    jax.tree_util.register_pytree_with_keys(kind, with_keys, unflatten, flatten)
    return kind
