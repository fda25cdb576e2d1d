"""Multi-query associative recall: a sequence lists pairs of a key and a value, and later repeats keys as queries."""

import numpy as np

BLANK = 0  # the id of a position without a token; the ids of keys follow, then those of values


def draw(
    random: np.random.Generator, size: int, keys: int, values: int, pairs: int, queries: int, length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draws sequences of pairs and queries.

    Each sequence draws its own dictionary, a uniformly random value for every key. It begins with `pairs` pairs, key
    before value: as many different keys as possible, in random order, and then repetitions of any of them with the same
    values. After the pairs, the keys of `queries` of them are at uniformly random positions. The answer at such a
    position is the value of the key. All other positions are blank. A key that is repeated among the pairs could be a
    query as well, because its value is known by then.

    Args:
      random: the generator.
      size: number of sequences N.
      keys: number of keys.
      values: number of values.
      pairs: number of pairs in a sequence.
      queries: number of queries in a sequence.
      length: number of tokens T in a sequence.

    Returns:
      The tokens and the answers, both [N T] int32. Ids are BLANK, then the keys, then the values. Then two boolean
      arrays [N T]: the first is True at queries, the second also at keys repeated among the pairs. Answers are BLANK
      where the second array is False.
    """
    dictionary = random.integers(values, size=(size, keys))
    listed = _orders(random, size, keys, min(pairs, keys))
    again = random.integers(keys, size=(size, max(0, pairs - keys)))
    listed = random.permuted(np.concatenate([listed, again], axis=1), axis=1)
    asked = np.take_along_axis(listed, _orders(random, size, pairs, queries), axis=1)
    places = 2 * pairs + _orders(random, size, length - 2 * pairs, queries)
    tokens = np.full((size, length), BLANK, np.int32)
    tokens[:, 0 : 2 * pairs : 2] = 1 + listed
    tokens[:, 1 : 2 * pairs : 2] = 1 + keys + np.take_along_axis(dictionary, listed, axis=1)
    np.put_along_axis(tokens, places, (1 + asked).astype(np.int32), axis=1)
    asks = np.zeros((size, length), bool)
    np.put_along_axis(asks, places, True, axis=1)
    might = asks.copy()
    # A key is repeated if, after a stable sort, it equals the key on its left.
    order = np.argsort(listed, axis=1, kind="stable")
    ordered, before = np.take_along_axis(listed, order, axis=1), np.zeros(listed.shape, bool)
    np.put_along_axis(before, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    might[:, 0 : 2 * pairs : 2] = before
    value = np.take_along_axis(dictionary, np.clip(tokens - 1, 0, keys - 1), axis=1)
    return tokens, np.where(might, 1 + keys + value, BLANK).astype(np.int32), asks, might


def _orders(random: np.random.Generator, size: int, count: int, taken: int) -> np.ndarray:
    """Returns the first `taken` numbers of a random permutation of 0 … count−1, [size taken]."""
    rows = np.broadcast_to(np.arange(count), (size, count))
    return random.permuted(rows, axis=1)[:, :taken]
