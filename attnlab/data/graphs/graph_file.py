"""Graphs in npz files of sparse matrices. Every number is checked before it is used."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnlab.data.graphs.graphs import MOST, UNKNOWN, Graph, joined, shares
from attnlab.data.io.arrays import npz
from attnlab.data.io.files import DataError
from attnlab.data.names import composed

PARTS = ("data", "indices", "indptr", "shape")  # the arrays of a sparse matrix in compressed row format (CSR)
ARRAYS = (*(f"{name}_{part}" for name in ("adj", "attr") for part in PARTS), "labels", "node_names", "class_names")
CLASSES = 2**16  # the largest number of classes


def read(file: bytes | Path, path: str | Path = "graph", classes: Sequence[str] = ()) -> Graph:
    """Reads a graph from an npz file.

    The file contains two sparse matrices in CSR format as `adj_*` and `attr_*` (data, indices, indptr, shape), and
    `labels`, where −1 means no class. `node_names` and `class_names` are optional, and numbers are the default. Other
    arrays are ignored. Edges are used in both directions, and their weights are ignored.

    Args:
      file: the bytes of the file, or its path.
      path: the name to use in messages if `file` is bytes.
      classes: the classes of a trained model, if the graph is read for inference. Then the labels need not cover all
        classes without `class_names`, and `labels` may be missing, which means that no node has a class.

    Raises:
      DataError: if the file is not of this form; the message names the array and the position. Causes include a node or
        a class out of range, rows that do not fit, numbers that are not finite, and a matrix without features. Without
        `class_names` and `classes`, every class up to the highest label must occur.
    """
    arrays, path = npz(file, path, ARRAYS), file if isinstance(file, Path) else path
    adjacency, features = _sparse(arrays, "adj", path), _sparse(arrays, "attr", path)
    N = adjacency.shape[0]
    if adjacency.shape != (N, N) or features.shape[0] != N or not N:
        shapes = f"adj is {_by(adjacency.shape)} and attr is {_by(features.shape)}"
        raise DataError(f"{path}: {shapes}; expected N × N and N × features, with at least 1 node")
    if not features.shape[1]:
        raise DataError(f"{path}: attr has no columns; nodes need features, for example the identity matrix")
    if classes:
        arrays = {"labels": np.full(N, UNKNOWN), "class_names": np.array(classes)} | arrays
    edges, notes = joined(adjacency.entries[adjacency.values != 0], N)
    if not np.isin(adjacency.values, (0, 1)).all():
        notes = (*notes, "edge weights are ignored: every weight other than 0 is an edge")
    labels, classes = _labels(arrays, N, path)
    names = _names(arrays, "node_names", N, path)
    kept = features.values != 0
    if bare := N - len(np.unique(features.entries[kept, 0])):
        notes = (*notes, f"{bare} node{' has' if bare == 1 else 's have'} no feature")
    values = shares(features.entries[kept], features.values[kept], N)
    return Graph(edges, features.entries[kept], values, features.shape[1], labels, names, classes, notes)


@dataclass(frozen=True, eq=False)
class _Sparse:
    """A sparse matrix: its shape, the positions of its entries [M 2] (row, column), and their values [M]."""

    shape: tuple[int, ...]
    entries: np.ndarray
    values: np.ndarray


def _sparse(arrays: dict[str, np.ndarray], name: str, path: str | Path) -> _Sparse:
    """Returns the matrix `name` with every number checked."""
    data, indices, starts, shape = (_array(arrays, f"{name}_{part}", path) for part in PARTS)
    for part, array in (("indices", indices), ("indptr", starts), ("shape", shape)):
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise DataError(f"{path}: {name}_{part} must be a 1-D array of integers, got {_typed(array)}")
    if shape.shape != (2,) or (shape < 0).any() or (shape > MOST).any():
        raise DataError(f"{path}: {name}_shape must be two sizes of at most {MOST:,}, got {str(shape.tolist())[:60]}")
    rows, columns = map(int, shape)
    starts = starts.astype(np.int64)
    good = len(starts) == rows + 1 and starts[0] == 0 and (np.diff(starts) >= 0).all() and starts[-1] == len(indices)
    if not good or data.shape != indices.shape:
        raise DataError(f"{path}: {name}_indptr does not divide {len(indices)} indices among {rows} rows")
    if data.dtype.kind not in "biuf" or not np.isfinite(data).all():
        raise DataError(f"{path}: {name}_data must be finite numbers")
    row = np.repeat(np.arange(rows), np.diff(starts))
    if (bad := np.flatnonzero((indices < 0) | (indices >= columns))).size:
        n = bad[0]
        what = "nodes" if name == "adj" else "features"
        index = f"{name}_indices[{n}]={indices[n]} of node {row[n]}"
        raise DataError(f"{path}: {index} is out of range; there are {columns} {what}")
    entries = np.stack([row, indices], axis=1).astype(np.int32)
    if len(entries) and (twice := _repeated(entries)) is not None:
        raise DataError(f"{path}: {name}_indices lists column {twice[1]} twice for node {twice[0]}")
    return _Sparse((rows, columns), entries, data.astype(np.float64))


def _repeated(entries: np.ndarray) -> np.ndarray | None:
    """Returns the first entry that occurs more than once, or None."""
    found, counts = np.unique(entries, axis=0, return_counts=True)
    return found[counts > 1][0] if (counts > 1).any() else None


def _labels(arrays: dict[str, np.ndarray], N: int, path: str | Path) -> tuple[np.ndarray, tuple[str, ...]]:
    """Returns the checked labels, and the names of the classes."""
    labels = _array(arrays, "labels", path)
    if labels.dtype.kind not in "iu" or labels.shape != (N,):
        raise DataError(f"{path}: labels must be a 1-D array of {N} integers, got {_typed(labels)}")
    named = arrays.get("class_names")
    count = int(labels.max()) + 1 if named is None or named.ndim != 1 else len(named)
    if count > CLASSES:
        raise DataError(f"{path}: there are {count:,} classes; at most {CLASSES:,} are supported")
    if (bad := np.flatnonzero((labels < UNKNOWN) | (labels >= count))).size:
        n, last = bad[0], max(count, 1) - 1
        raise DataError(
            f"{path}: labels[{n}]={labels[n]} is out of range; classes are 0 … {last}, and −1 means no class"
        )
    if count < 2:
        there_are = "is 1 class" if count == 1 else f"are {count} classes"
        raise DataError(f"{path}: there {there_are}; at least 2 are needed")
    if named is None and (gaps := np.setdiff1d(np.arange(count), labels)).size:
        # Labels leave a class out, so at least one label is not below the number of different classes. Name its node.
        last = count - gaps.size - 1
        n = np.flatnonzero(labels > last)[0]
        raise DataError(
            f"{path}: node {n} has label {labels[n]}, but no node has label {gaps[0]}; number the {last + 1} classes "
            f"0 … {last}, with −1 for no class, or add class_names"
        )
    return labels.astype(np.int32), _names(arrays, "class_names", count, path)


def _names(arrays: dict[str, np.ndarray], name: str, count: int, path: str | Path) -> tuple[str, ...]:
    """Returns `count` different names; numbers if the file has none."""
    if name not in arrays:
        return tuple(map(str, range(count)))
    given = arrays[name]
    if given.shape != (count,):
        raise DataError(f"{path}: {name} must be a 1-D array of {count} names, got {_typed(given)}")
    # Names may be stored as bytes. Control characters are refused below, because they would break the rows of a table.
    text = lambda value: value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    names = [composed(text(value)) for value in given.tolist()]
    if len(set(names)) < count:
        raise DataError(f"{path}: {name} contains {Counter(names).most_common(1)[0][0]!r} twice")
    if bad := next((n for n in names if not n or re.search(r"[\x00-\x1f\x7f]", n)), None):
        raise DataError(f"{path}: {name} contains {bad!r}, which is not a valid name")
    return tuple(names)


def _array(arrays: dict[str, np.ndarray], name: str, path: str | Path) -> np.ndarray:
    """Returns an array of the file; raises DataError if it is missing."""
    if name not in arrays:
        expected = f"adj_* and attr_* ({', '.join(PARTS)}) and labels"
        raise DataError(f"{path} has no array {name!r}; a graph file contains {expected}")
    return arrays[name]


def _by(shape: tuple[int, ...]) -> str:
    """Returns the shape of a matrix in words."""
    return " × ".join(map(str, shape))


def _typed(array: np.ndarray) -> str:
    """Returns the type and the shape of an array in words."""
    return f"{array.dtype} with shape {array.shape}"
