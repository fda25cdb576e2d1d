"""The attention maps that a run kept for a few examples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.lab.runs.run_folder import FolderError, RunFolder


@dataclass(frozen=True)
class Example:
    """The attention maps of one example."""

    source: list[str]
    """The symbols that the model read, [S]."""
    target: list[str]
    """The symbols that the model answered, [T]."""
    layers: np.ndarray
    """The attention weights of every layer and head, [L H T S]."""


def examples(run: RunFolder) -> tuple[Example, ...] | None:
    """Read the examples in `maps.json`. Null weights become 0.

    The file lists `examples`, each with source, target and layers. The file of an older run is one such example.

    Args:
        run: the run folder.

    Returns:
        The examples, or None if the file does not exist.

    Raises:
        FolderError: if the file is damaged, shapes do not match, or examples differ in layers or heads.
    """
    maps = run.read("maps")
    if maps is None:
        return None
    listed = maps.get("examples", [maps])
    if not isinstance(listed, list):
        raise FolderError(f"{run.file('maps')}: examples must be a list")
    found = tuple(_example(entry, str(run.file("maps"))) for entry in listed)
    if len({example.layers.shape[:2] for example in found}) > 1:
        raise FolderError(f"{run.file('maps')}: all examples must have the same number of layers and heads")
    return found


def _example(entry: object, where: str) -> Example:
    """Check one entry of `maps.json` and return it as an Example."""
    entry = entry if isinstance(entry, dict) else {}
    source, target = entry.get("source"), entry.get("target")
    if not isinstance(source, list) or not isinstance(target, list):
        raise FolderError(f"{where}: source and target must be lists")
    try:
        layers = np.nan_to_num(np.array(entry.get("layers"), np.float64))
    except (ValueError, TypeError, RecursionError) as error:
        raise FolderError(f"{where}: layers must be numbers [L H T S]") from error
    shape = len(target), len(source)
    if layers.ndim != 4 or layers.shape[2:] != shape or 0 in layers.shape:
        raise FolderError(f"{where}: layers have shape {list(layers.shape)}, expected [L, H, {shape[0]}, {shape[1]}]")
    return Example(source, target, layers)
