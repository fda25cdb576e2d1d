"""Tokens that tell pairs of a key and a value, then name keys whose values are asked for."""

import numpy as np

BLANK = 0  # a place that tells nothing; keys follow it, then values


def draw(
    random: np.random.Generator, size: int, keys: int, values: int, pairs: int, queries: int, length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Tokens [N T], answers [N T], which places ask [N T] and which might [N T]; ids int32.

    BLANK, `keys` keys and `values` values have the ids from 0 on. Each sequence draws a dictionary of its own, a
    value for every key, evenly; then tells `pairs` of it, key before value: as many different keys as there are, in
    random order, the rest any of them again with the same value. After the pairs stand the keys of `queries` of
    them, at places drawn evenly; the answer at such a place is the key's value. All other places are blank. A key
    that is told again might be asked for as well: its value has been told.
    """
    dictionary = random.integers(values, size=(size, keys))
    told = _orders(random, size, keys, min(pairs, keys))
    again = random.integers(keys, size=(size, max(0, pairs - keys)))
    told = random.permuted(np.concatenate([told, again], axis=1), axis=1)
    asked = np.take_along_axis(told, _orders(random, size, pairs, queries), axis=1)
    places = 2 * pairs + _orders(random, size, length - 2 * pairs, queries)
    tokens = np.full((size, length), BLANK, np.int32)
    tokens[:, 0 : 2 * pairs : 2] = 1 + told
    tokens[:, 1 : 2 * pairs : 2] = 1 + keys + np.take_along_axis(dictionary, told, axis=1)
    np.put_along_axis(tokens, places, (1 + asked).astype(np.int32), axis=1)
    asks = np.zeros((size, length), bool)
    np.put_along_axis(asks, places, True, axis=1)
    might = asks.copy()
    # Told before: in a sort that leaves equal ones in their order, equal to the one left of it.
    order = np.argsort(told, axis=1, kind="stable")
    ordered, before = np.take_along_axis(told, order, axis=1), np.zeros(told.shape, bool)
    np.put_along_axis(before, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    might[:, 0 : 2 * pairs : 2] = before
    value = np.take_along_axis(dictionary, np.clip(tokens - 1, 0, keys - 1), axis=1)
    return tokens, np.where(might, 1 + keys + value, BLANK).astype(np.int32), asks, might


def _orders(random: np.random.Generator, size: int, count: int, taken: int) -> np.ndarray:
    """The first `taken` of 0 … count−1 in a random order, a row for each of `size`."""
    rows = np.broadcast_to(np.arange(count), (size, count))
    return random.permuted(rows, axis=1)[:, :taken]
