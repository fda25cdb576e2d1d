"""The begin and end marks of a source sequence."""

from collections.abc import Iterable

from attnlab.data.text.vocabulary import BEGIN, END

# By name: the marks before and after the symbols of a source.
SOURCE_MARKS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "end": ((), (END,)),
    "begin": ((BEGIN,), ()),
    "both": ((BEGIN,), (END,)),
    "none": ((), ()),
}
DEFAULT = "end"  # the default of all tasks, as in fairseq, JoeyNMT and tensor2tensor
SHOWN = {BEGIN: "⊢", END: "∎"}  # how a mark is printed in a list of symbols


def marked(ids: Iterable[int], marks: str) -> list[int]:
    """Adds the marks named by `marks`, one of `SOURCE_MARKS`, to the ids of a source.

    >>> marked([5, 3], "both")
    [1, 5, 3, 2]
    """
    before, after = SOURCE_MARKS[marks]
    return [*before, *ids, *after]


def mark_count(marks: str) -> int:
    """Returns how many marks each source has.

    >>> mark_count("end")
    1
    """
    return len(marked([], marks))
