"""Text as the Moses scripts leave it (Koehn et al. 2007): lower case, uniform punctuation, separated from words.

Data sets for machine translation are in this form, and so are the inputs of models trained on them. The rules are those
of `lowercase`, `normalize-punctuation` and `tokenizer`, in this order. This is a new implementation for English and
German.
"""

import re

_UNIFORM = {
    mark: plain for plain, marks in {'"': "„“”«»", "'": "‘’‚´`", "-": "–—", "...": "…"}.items() for mark in marks
}
_ESCAPES = {
    **{"&": "&amp;", "|": "&#124;", "<": "&lt;", ">": "&gt;"},
    **{"'": "&apos;", '"': "&quot;", "[": "&#91;", "]": "&#93;"},
}
_WRITTEN = {escape: mark for mark, escape in _ESCAPES.items()}
_ESCAPED = re.compile("|".join(map(re.escape, _WRITTEN)))
_LETTER = r"[^\W\d_]"


def tokenised(sentence: str, language: str) -> str:
    """Converts what a person types to the form of the data sets.

    Text that already has this form is unchanged, with one exception: the full stop of a German abbreviation ("ca.") is
    separated.

    Args:
      sentence: the text.
      language: "en" or "de".

    >>> tokenised("A man's T-shirt says “Hi”, 1,000 times.", "en")
    'a man &apos;s t-shirt says &quot; hi , &quot; 1,000 times .'
    """
    sentence = "".join(_UNIFORM.get(mark, mark) for mark in sentence.lower())
    pattern, replacement = (r'"([,.]+)', r'\1"') if language == "en" else (r'(\.+|,)"', r'"\1')
    sentence = re.sub(pattern, replacement, sentence)
    words: list[str] = []
    for word in sentence.split():
        # A word with escapes is tokenized already.
        words += [word] if _ESCAPED.search(word) else _parts(word, language)
    words = [piece for n, word in enumerate(words) for piece in _stopped(word, "".join(words[n + 1 : n + 2]), language)]
    return " ".join(words)


def written(sentence: str) -> str:
    """Replaces escapes by the marks they stand for, for display.

    >>> written("a man &apos;s")
    "a man 's"
    """
    return _ESCAPED.sub(lambda found: _WRITTEN[found[0]], sentence)


def _parts(word: str, language: str) -> list[str]:
    """Separates the marks of a word from its letters, except hyphens, full stops, and commas within numbers."""
    word = re.sub(r"([^\w\s.',-]|_|\.{2,})", r" \1 ", word)
    word = re.sub(r"(?<!\d),|,(?!\d)", " , ", word)
    if language == "en":
        # An apostrophe between letters stays with the letters after it.
        word = re.sub(rf"(?<!{_LETTER})'|'(?!{_LETTER})", " ' ", word)
        word = re.sub(rf"(?<={_LETTER})'(?={_LETTER})", " '", word)
    else:
        word = word.replace("'", " ' ")
    return ["".join(_ESCAPES.get(mark, mark) for mark in part) for part in word.split()]


def _stopped(word: str, after: str, language: str) -> list[str]:
    """Separates the full stop at the end of a word.

    The full stop stays if the word is an abbreviation with other full stops, or if the next word is in lower case. In
    German it also stays after a number or a single letter.
    """
    stem = word.removesuffix(".")
    if stem == word or stem.endswith(".") or not stem:
        return [word]
    abbreviated = "." in stem and re.search(_LETTER, stem)
    german = language == "de" and (stem.isdecimal() or re.fullmatch(_LETTER, stem))
    return [word] if abbreviated or german or after[:1].islower() else [stem, "."]
