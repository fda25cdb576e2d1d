"""Words from the classes of frames, if the positions of words are unknown."""

from itertools import groupby

SHORTEST = 5  # consecutive frames of a class that make a word
PAUSE = 3  # consecutive frames of silence that separate two equal words


def collapse(label: list[int], gap: int | None = None) -> list[int]:
    """Returns the classes of the runs of equal frames.

    Runs of fewer than 5 frames are ignored, and equal neighbours become one class. The class `gap` separates neighbours
    if its run has at least 3 frames, and is not part of the result.

    >>> collapse([7] * 9 + [3] * 2 + [7] * 8 + [1] * 6), collapse([7] * 9 + [0] * 3 + [7] * 8, gap=0)
    ([7, 1], [7, 7])
    """
    runs = [(name, len(list(run))) for name, run in groupby(label)]
    kept = [name for name, count in runs if count >= (PAUSE if name == gap else SHORTEST)]
    return [name for name, _ in groupby(kept) if name != gap]
