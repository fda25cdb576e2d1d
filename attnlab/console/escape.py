"""Text of others on a terminal: what would steer it, or hide or turn what stands there, is shown instead of sent."""

from unicodedata import bidirectional, category

PICTURES = 0x2400  # of the controls below U+0020, in their order
SCRIPTS = "\u200c\u200d\u180e"  # some scripts cannot be written without these, though they are not seen
LETTERS = ("L", "R", "AL", "AN")  # a mark that has the direction of a letter or number turns nothing but itself


def plain(text: str) -> str:
    r"""A line that a terminal shows as it stands: controls as pictures, what hides or turns text as its code point.

    Ends of lines and tabs are controls. What scripts need stays: combining marks, joiners, marks of direction.

    >>> print(plain("a\x1b[2Jb\n"), plain("gpj\u202e.exe"), plain("\x9b2J"), plain("נ\u200fּ न्\u200d"))
    a␛[2Jb␊ gpj⟨U+202E⟩.exe ⟨U+009B⟩2J נ‏ּ न्‍
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(letter: str) -> str:
    point = ord(letter)
    if point < 0x20:
        return chr(PICTURES + point)
    if point == 0x7F:
        return "␡"
    hidden = category(letter) in ("Cc", "Cs", "Zl", "Zp") or (category(letter) == "Cf" and not _written(letter))
    return f"⟨U+{point:04X}⟩" if hidden else letter


def _written(letter: str) -> bool:
    return letter in SCRIPTS or bidirectional(letter) in LETTERS
