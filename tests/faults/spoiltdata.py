"""Your own data files that a task must refuse, with the words of the error message. This module holds data only.

A task gets train.txt, valid.txt and test.txt, which are valid except for the files of the case. The content of a file
is bytes, None for no file, "folder" for a folder, or "loop" for a link to itself. The name after the files is passed as
the training file.
"""

import gzip

PAIRS = b"a b\tb a\nb\tb\nab\tba\n" * 4
GOOD = {
    "parallel": PAIRS, "text": b"to be or not to be\n" * 9,
    "sigmorphon": b"ab\ta b\nba\tb a\n" * 4, "cmudict": b"ab  A B\n",
}  # fmt: skip
PACKED = gzip.compress(PAIRS, mtime=0)

SPOILT: list[tuple[str, dict[str, bytes | str | None], str, str]] = [
    # task, files, name of the training file, words of the message
    ("parallel", {"train.txt": None}, "train.txt", "train.txt cannot be read: No such file"),
    ("parallel", {"valid.txt": None}, "train.txt", "valid.txt cannot be read: No such file"),
    ("parallel", {"test.txt": None}, "train.txt", "test.txt cannot be read: No such file"),
    ("parallel", {"train.txt": b""}, "train.txt", "train.txt contains no pairs"),
    ("parallel", {"valid.txt": b"\n\n \n"}, "train.txt", "valid.txt contains no pairs"),
    ("parallel", {"train.txt": b"a\tb\nc\n"}, "train.txt", "train.txt, line 2: expected 1 tab, found 0"),
    ("parallel", {"test.txt": b"a\tb\tc\n"}, "train.txt", "test.txt, line 1: expected 1 tab, found 2"),
    ("parallel", {"train.txt": b"a\tb\na\t \n"}, "train.txt", "train.txt, line 2: the target is empty"),
    ("parallel", {"train.txt": b"\tb\n"}, "train.txt", "train.txt, line 1: the source is empty"),
    ("parallel", {"train.txt": b"a\tb\n\xff\tb\n"}, "train.txt", "train.txt is not UTF-8: byte 4 is 0xff"),
    ("parallel", {"train.txt": "a\tb\n".encode("utf-16")}, "train.txt", "train.txt is "),
    ("parallel", {"train.txt": "a\tb\n".encode("utf-16-le")}, "train.txt", "train.txt is not text: byte 1 is 0x00"),
    ("parallel", {"valid.txt": b"a\0\tb\n"}, "train.txt", "valid.txt is not text: byte 1 is 0x00"),
    ("parallel", {"train.txt": b"a\tb\xc3"}, "train.txt", "train.txt is not UTF-8: byte 3 is 0xc3"),
    ("parallel", {"train.txt": "folder"}, "train.txt", "train.txt cannot be read: Is a directory"),
    ("parallel", {"train.txt": "loop"}, "train.txt", "train.txt cannot be read: "),
    ("parallel", {}, "n" * 300, "cannot be read: File name too long"),
    ("parallel", {}, "~nobody-of-that-name/train.txt", "~nobody-of-that-name/train.txt cannot be read"),
    ("parallel", {}, "train.txt/train.txt", "cannot be read: Not a directory"),
    ("parallel", {}, "a,b,c", "'a,b,c' is neither a file nor two"),
    ("parallel", {"s": b"a\nb\n"}, "s,t", "t cannot be read: No such file"),
    ("parallel", {"s": b"a\nb\n", "t": b"a\nb\nc\n"}, "s,t", "s has 2 lines, but t has 3; the lines must correspond"),
    ("parallel", {"s": b"a\n\n", "t": b"a\nb\n"}, "s,t", "s, line 2 is empty, but line 2 of t is not"),
    ("parallel", {"t.gz": PACKED[:-9]}, "t.gz", "t.gz is truncated or damaged"),
    ("parallel", {"t.gz": PAIRS}, "t.gz", "t.gz is truncated or damaged"),
    ("parallel", {"t.gz": PACKED[:-8] + b"\0" * 8}, "t.gz", "t.gz is truncated or damaged"),
    ("parallel", {"t.gz": b""}, "t.gz", "t.gz"),
    ("text", {"train.txt": b""}, "train.txt", "train.txt contains no text"),
    ("text", {"train.txt": b" \n\t\n"}, "train.txt", "train.txt contains no text"),
    ("text", {"train.txt": b"to be"}, "train.txt", "the part 'train' has 5 symbols, but task.length=8 requires more"),
    ("text", {"valid.txt": b"zzzzzzzzzzzzzzzzzzzzz"}, "train.txt", "the part 'valid': 21 of 21 symbols do not occur"),
    (
        "text",
        {"test.txt": b"\xfe\xff"},
        "train.txt",
        "test.txt is not UTF-8: it begins with the byte-order mark of UTF-16",
    ),
    ("text", {"train.txt": "folder"}, "train.txt", "train.txt cannot be read: Is a directory"),
    ("sigmorphon", {"train.txt": b"ab\ta b\nba\n"}, "train.txt", "train.txt, line 2: expected a word, a tab and"),
    ("sigmorphon", {"valid.txt": b"ab\t\n"}, "train.txt", "valid.txt, line 1: "),
    ("sigmorphon", {"test.txt": b""}, "train.txt", "test.txt contains no words"),
    ("cmudict", {"train.txt": b"ab  A B\nba\n"}, "train.txt", "train.txt, line 2: 'ba' has no phones"),
    ("cmudict", {"train.txt": b"# nothing\n"}, "train.txt", "train.txt contains no words"),
]
