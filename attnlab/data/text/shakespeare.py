"""Tiny Shakespeare: forty thousand lines of his plays in one file (Karpathy 2015)."""

from attnlab.data.io.files import Source, read, text

# The branch, not a commit: the hash says which state of it is meant.
INPUT = Source(
    set="tiny_shakespeare",
    file="input.txt",
    sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    size=1_115_394,
    url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
)
SOURCES = (INPUT,)
HELD = 20  # the first twentieth is held out to validate with


def parts() -> dict[str, str]:
    """The text in three pieces, in its order: the first 5% to validate, 85% to train with, 10% to test.

    The test is the last tenth, 111,540 characters, on which published numbers stand under the name of validation.
    They were trained on all nine tenths before it. Here a twentieth of the whole is held out, so that what is chosen
    (a rate, when to stop) is not chosen by the test: the first one, so that the text just before the test, the
    likest to it, is learned from as it was there. Raises DataError as `files.read` does.
    """
    content = text(read(INPUT), INPUT.file)
    test = int(len(content) * 0.9)
    valid = len(content) // HELD
    return {"valid": content[:valid], "train": content[valid:test], "test": content[test:]}
