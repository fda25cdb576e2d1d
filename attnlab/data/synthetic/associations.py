"""Keys with their values, one pair after another, and the keys that are asked for at the end."""

import numpy as np


def pairs(random: np.random.Generator, size: int, symbols: int, length: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Keys and values [size T] int32 below `symbols`.

    Length 0: every key once and every value once, each in an order of its own, so that a value is never told twice.
    Otherwise `length` keys and values drawn with replacement, so that later values overwrite earlier ones.
    """
    if length:
        keys, values = random.integers(symbols, size=(2, size, length), dtype=np.int32)
        return keys, values
    ordered = np.broadcast_to(np.arange(symbols, dtype=np.int32), (size, symbols))
    return random.permuted(ordered, axis=1), random.permuted(ordered, axis=1)


def latest(keys: np.ndarray, values: np.ndarray, symbols: int) -> tuple[np.ndarray, np.ndarray]:
    """The value that each key had last [N symbols] (0 where it has none), and whether it has one."""
    size, length = keys.shape
    place = np.full((size, symbols), -1)
    rows = np.broadcast_to(np.arange(size)[:, None], keys.shape)
    np.maximum.at(place, (rows, keys), np.broadcast_to(np.arange(length), keys.shape))
    told = place >= 0
    found = np.take_along_axis(values, np.maximum(place, 0), axis=1)
    return np.where(told, found, 0).astype(np.int32), told


def asked(random: np.random.Generator, keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One question a sequence: the key at a place drawn evenly, [N 1], and the value that it had last, [N 1]."""
    size, length = keys.shape
    rows = np.arange(size)
    queries = keys[rows, random.integers(length, size=size)][:, None]
    last = length - 1 - np.argmax((keys == queries)[:, ::-1], axis=1)
    return queries, values[rows, last][:, None]
