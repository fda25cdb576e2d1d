"""Tiny Shakespeare: forty thousand lines of Shakespeare's plays in one file (Karpathy 2015)."""

from attnlab.data.io.files import text
from attnlab.data.io.published import Source, read

# The address names a branch and not a commit; the hash identifies the version.
INPUT = Source(
    set="tiny_shakespeare",
    file="input.txt",
    sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    size=1_115_394,
    url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
)
SOURCES = (INPUT,)
HELD = 20  # the first twentieth is held out for validation


def parts() -> dict[str, str]:
    """Returns the text in three pieces: the first 5% for validation, then 85% for training, and 10% for test.

    The test is the last tenth, 111,540 characters. Published results call this tenth validation, and are from models
    trained on the nine tenths before it. Here a twentieth of the text is held out as well, so that choices such as the
    learning rate are not made on the test. It is the first twentieth, so that the text directly before the test, which
    is the most similar to it, remains in training.

    Raises:
      DataError: as `published.read`.
    """
    content = text(read(INPUT), INPUT.file)
    test = int(len(content) * 0.9)
    valid = len(content) // HELD
    return {"valid": content[:valid], "train": content[valid:test], "test": content[test:]}
