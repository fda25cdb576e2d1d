"""Dyck languages: well-nested brackets of several kinds, nested at most so deep (Hewitt et al. 2020)."""

from __future__ import annotations

import numpy as np

NONE = 0  # the id in place of a closing bracket where no bracket is open; it is that of an opening bracket


def draw(
    random: np.random.Generator, size: int, length: int, kinds: int, depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws beginnings of endless walks through Dyck-(k, m), with k = `kinds` and m = `depth`.

    Where no bracket is open, one opens. Where m are open, the last one closes. Elsewhere, both are equally likely.
    Kinds of opening brackets are uniform.

    Args:
      random: the generator.
      size: number of sequences N.
      length: number of brackets T.
      kinds: number of kinds of brackets. Ids 0 … k−1 open and k … 2k−1 close them.
      depth: the largest number of open brackets.

    Returns:
      The ids [N T] int32. After each bracket, the id that closes the last open one, or NONE if none is open, [N T]
      int32. The number of brackets since that one opened, or 0 if none is open, [N T] int32.
    """
    opens = random.random((size, length)) < 0.5
    kind = random.integers(kinds, size=(size, length), dtype=np.int32)
    ids, closing, distance = (np.zeros((size, length), np.int32) for _ in range(3))
    open_kinds, opened_at = (np.zeros((size, depth + 1), np.int32) for _ in range(2))  # by level, from 1
    level, rows = np.zeros(size, np.int32), np.arange(size)
    for t in range(length):
        up = (level == 0) | (opens[:, t] & (level < depth))
        ids[:, t] = np.where(up, kind[:, t], kinds + open_kinds[rows, level])
        level += np.where(up, 1, -1).astype(np.int32)
        open_kinds[rows[up], level[up]], opened_at[rows[up], level[up]] = kind[up, t], t
        closing[:, t] = np.where(level > 0, kinds + open_kinds[rows, level], NONE)
        distance[:, t] = np.where(level > 0, t - opened_at[rows, level], 0)
    return ids, closing, distance
