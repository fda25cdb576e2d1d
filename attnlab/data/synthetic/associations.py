"""Associative recall: pairs of keys and values, and queries for the values of keys."""

import numpy as np


def pairs(random: np.random.Generator, size: int, symbols: int, length: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draws sequences of keys and values.

    Args:
      random: the generator.
      size: number of sequences.
      symbols: number of different keys, and of different values.
      length: number of pairs in a sequence, drawn with replacement, so that later values overwrite earlier ones. With
        0, every key and every value occurs once, in independent orders.

    Returns:
      The keys and the values, each [size T] int32 below `symbols`.
    """
    if length:
        keys, values = random.integers(symbols, size=(2, size, length), dtype=np.int32)
        return keys, values
    ordered = np.broadcast_to(np.arange(symbols, dtype=np.int32), (size, symbols))
    return random.permuted(ordered, axis=1), random.permuted(ordered, axis=1)


def latest(keys: np.ndarray, values: np.ndarray, symbols: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the last value of each key.

    Args:
      keys: the keys [N T].
      values: their values [N T].
      symbols: number of different keys.

    Returns:
      The values [N symbols] int32, 0 for a key without one, and a boolean array [N symbols]: whether the key has a
      value.
    """
    size, length = keys.shape
    # The last position of each key, −1 if it does not occur.
    place = np.full((size, symbols), -1)
    rows = np.broadcast_to(np.arange(size)[:, None], keys.shape)
    np.maximum.at(place, (rows, keys), np.broadcast_to(np.arange(length), keys.shape))
    has_value = place >= 0
    found = np.take_along_axis(values, np.maximum(place, 0), axis=1)
    return np.where(has_value, found, 0).astype(np.int32), has_value


def draw_queries(random: np.random.Generator, keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draws one query per sequence: the key at a uniformly random position.

    Args:
      random: the generator.
      keys: the keys [N T].
      values: their values [N T].

    Returns:
      The keys [N 1], and the last value of each [N 1].
    """
    size, length = keys.shape
    rows = np.arange(size)
    queries = keys[rows, random.integers(length, size=size)][:, None]
    last = length - 1 - np.argmax((keys == queries)[:, ::-1], axis=1)
    return queries, values[rows, last][:, None]
