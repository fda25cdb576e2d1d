"""Multi30k, task 1: captions of photographs in English and their translations into German (Elliott et al. 2016)."""

import gzip

from attnlab.data.io.files import lines, text
from attnlab.data.io.published import listed, read
from attnlab.data.names import check
from attnlab.data.text.example import Example, Parts
from attnlab.data.text.parallel import aligned

LANGUAGES = ("en", "de")
PARTS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
TOKENISED = ".lc.norm.tok"

# File, bytes, sha256. The raw files are served gzipped. Their size and hash are those of the gzipped file, so a copy
# that was compressed again does not match. The tokenized files are served as text. A copy of these may be gzipped; then
# its content is verified.
_RAW = """
train.en.gz 568929 d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f
train.de.gz 637044 726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6
val.en.gz 21650 14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28
val.de.gz 24681 f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a
test_2016_flickr.en.gz 21077 611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9
test_2016_flickr.de.gz 22890 9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8
"""
_TOK = """
train.lc.norm.tok.en 1837696 08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119
train.lc.norm.tok.de 2150008 cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505
val.lc.norm.tok.en 64608 46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec
val.lc.norm.tok.de 77273 97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00
test_2016_flickr.lc.norm.tok.en 63307 5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2
test_2016_flickr.lc.norm.tok.de 71917 c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4
"""

_ADDRESS = "https://raw.githubusercontent.com/multi30k/dataset"
SOURCES = {
    **listed("multi30k", f"{_ADDRESS}/c9be912dc05a3ebf9ae5bb5f7f58c1791cda43ab/data/task1/raw", _RAW),
    **listed("multi30k", f"{_ADDRESS}/7bee46bc74186b4b6254603143610f730d40bf66/data/task1/tok", _TOK),
}


def parts(source: str = "de", target: str = "en", tokenised: bool = True) -> Parts:
    """Returns the parts: a caption and its translation per example, in the order of the files.

    There are 29,000 captions for training, 1,014 for validation and 1,000 (test2016) for test.

    Args:
      source: language of the sources, "en" or "de".
      target: language of the targets, the other one.
      tokenised: whether to use the text as published results do: lower case, with uniform punctuation separated by
        spaces (Moses). If False, the text is as it was written, except for white space at the ends of lines.

    Raises:
      ValueError: if the languages are not "en" and "de", one of each.
      DataError: as `published.read`.
    """
    check("source", source, LANGUAGES)
    check("target", target, LANGUAGES)
    if source == target:
        raise ValueError(f"{source=} and {target=} must differ")
    kind = TOKENISED if tokenised else ""
    return {part: _pairs(f"{name}{kind}.{source}", f"{name}{kind}.{target}") for part, name in PARTS.items()}


def _pairs(*names: str) -> list[Example]:
    """Returns the examples of two files."""
    sources, targets = ([line.strip() for line in lines(_content(name))] for name in names)
    return [Example(source, (target,)) for source, target in aligned(names, sources, targets)]


def _content(name: str) -> str:
    """Returns the text of a file."""
    if TOKENISED in name:
        return text(read(SOURCES[name]), name)
    return text(gzip.decompress(read(SOURCES[f"{name}.gz"])), name)
