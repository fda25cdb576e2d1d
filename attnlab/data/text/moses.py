"""Text as Moses' scripts leave it: in lower case, punctuation made uniform, marks apart from words (Koehn et al. 2007).

What data sets of machine translation hold, and so what their models read. The rules are those of its `lowercase`,
`normalize-punctuation` and `tokenizer`, in this order, written anew for English and German.
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
    """What a person writes, as the data sets have it; what they have stays as it is, but for German abbreviations
    ("ca."), whose full stop is set apart here. `language`: "en" or "de".

    >>> tokenised("A man's T-shirt says “Hi”, 1,000 times.", "en")
    'a man &apos;s t-shirt says &quot; hi , &quot; 1,000 times .'
    """
    sentence = "".join(_UNIFORM.get(mark, mark) for mark in sentence.lower())
    within, beside = (r'"([,.]+)', r'\1"') if language == "en" else (r'(\.+|,)"', r'"\1')
    sentence = re.sub(within, beside, sentence)
    words: list[str] = []
    for word in sentence.split():
        # What is escaped was told apart before.
        words += [word] if _ESCAPED.search(word) else _parts(word, language)
    words = [piece for n, word in enumerate(words) for piece in _stopped(word, "".join(words[n + 1 : n + 2]), language)]
    return " ".join(words)


def written(sentence: str) -> str:
    """With the marks themselves for what stands for them: what a person reads.

    >>> written("a man &apos;s")
    "a man 's"
    """
    return _ESCAPED.sub(lambda found: _WRITTEN[found[0]], sentence)


def _parts(word: str, language: str) -> list[str]:
    """Its letters and its marks apart: but for hyphens, full stops, and commas within numbers."""
    word = re.sub(r"([^\w\s.',-]|_|\.{2,})", r" \1 ", word)
    word = re.sub(r"(?<!\d),|,(?!\d)", " , ", word)
    if language == "en":
        # One between letters stays with those behind it.
        word = re.sub(rf"(?<!{_LETTER})'|'(?!{_LETTER})", " ' ", word)
        word = re.sub(rf"(?<={_LETTER})'(?={_LETTER})", " '", word)
    else:
        word = word.replace("'", " ' ")
    return ["".join(_ESCAPES.get(mark, mark) for mark in part) for part in word.split()]


def _stopped(word: str, after: str, language: str) -> list[str]:
    """Its full stop apart, unless it is an abbreviation's, or the sentence goes on; a German number keeps it."""
    stem = word.removesuffix(".")
    if stem == word or stem.endswith(".") or not stem:
        return [word]
    abbreviated = "." in stem and re.search(_LETTER, stem)
    german = language == "de" and (stem.isdecimal() or re.fullmatch(_LETTER, stem))
    return [word] if abbreviated or german or after[:1].islower() else [stem, "."]
