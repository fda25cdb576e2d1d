"""The public data sets attnlab knows, and where their files lie."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from attnlab.data.audio import spoken
from attnlab.data.graphs import cora
from attnlab.data.images import cells, images
from attnlab.data.io.bundles import Bundle
from attnlab.data.io.files import DataError, Source, fetch, locate, verified
from attnlab.data.names import check
from attnlab.data.text import cmudict, multi30k, scan, sentences, shakespeare, sigmorphon

SOURCES: dict[str, tuple[Source | Bundle, ...]] = {
    "bccd": cells.SOURCES,
    "cmudict": cmudict.SOURCES,
    "cora": cora.SOURCES,
    "fashion_mnist": images.SOURCES,
    "fsdd": spoken.SOURCES,
    "multi30k": tuple(multi30k.SOURCES.values()),
    "scan": scan.SOURCES,
    "sigmorphon2020_g2p": sigmorphon.SOURCES,
    "text_classification": tuple(sentences.SOURCES.values()),
    "tiny_shakespeare": shakespeare.SOURCES,
}


def data(names: Iterable[str] = ()) -> Iterator[tuple[str, str, str, str | None]]:
    """(set, file, status, path) for each file of the data sets named, or of all, one after the other.

    A file that is missing is fetched; each is verified. The status is "verified" or "fetched"; where a file
    cannot be had it is the line that says why, and the path is None.

    Raises ValueError for a data set that is not known.
    """
    names = list(names) or list(SOURCES)
    for name in names:
        check("data", name, SOURCES)
    return (_find(source) for name in names for source in SOURCES[name])


def _find(source: Source | Bundle) -> tuple[str, str, str, str | None]:
    try:
        path, status = (source.find()[0], "verified") if isinstance(source, Bundle) else _file(source)
    except DataError as error:
        return source.set, source.file, str(error), None
    return source.set, source.file, status, str(path)


def _file(source: Source) -> tuple[Path, str]:
    path = locate(source)
    if path is None:
        return fetch(source)[0], "fetched"
    verified(source, path)
    return path, "verified"
