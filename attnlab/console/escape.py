"""Escape untrusted text for a terminal, so that it cannot control the terminal, hide text or reverse its direction."""

from unicodedata import bidirectional, category

PICTURES = 0x2400  # the first symbol for a control character, in the order of those below U+0020
SCRIPTS = "\u200c\u200d\u180e"  # invisible characters that some scripts need
LETTERS = ("L", "R", "AL", "AN")  # a mark with the direction of a letter or number does not affect other characters


def plain(text: str) -> str:
    r"""Return text that a terminal shows unchanged, on one line.

    Control characters, including line ends and tabs, become their symbols. Characters that hide or reverse text become
    their code points. Characters that writing systems need are kept: combining marks, joiners and direction marks.

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
