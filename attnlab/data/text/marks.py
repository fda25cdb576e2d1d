"""The marks at the ends of a source sequence."""

from collections.abc import Iterable

from attnlab.data.text.vocabulary import BEGIN, END

# The marks before and after the symbols of a source, by name.
SOURCE_MARKS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "end": ((), (END,)),
    "begin": ((BEGIN,), ()),
    "both": ((BEGIN,), (END,)),
    "none": ((), ()),
}
DEFAULT = "end"  # as fairseq, JoeyNMT and tensor2tensor mark sources; every task takes its default from here
SHOWN = {BEGIN: "⊢", END: "∎"}  # how a mark is written where symbols are listed


def marked(ids: Iterable[int], marks: str) -> list[int]:
    """The ids of a source with its marks; `marks` is one of `SOURCE_MARKS`.

    >>> marked([5, 3], "both")
    [1, 5, 3, 2]
    """
    before, after = SOURCE_MARKS[marks]
    return [*before, *ids, *after]


def mark_count(marks: str) -> int:
    """How many marks each source has.

    >>> mark_count("end")
    1
    """
    return len(marked([], marks))
