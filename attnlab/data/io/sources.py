"""The public data sets that attnlab knows, and where their files are."""

from collections.abc import Iterable, Iterator

from attnlab.data.audio import spoken
from attnlab.data.graphs import cora
from attnlab.data.images import cells, fashion
from attnlab.data.io.bundles import Bundle
from attnlab.data.io.files import DataError
from attnlab.data.io.published import Source, find
from attnlab.data.names import check
from attnlab.data.text import cmudict, multi30k, scan, sentences, shakespeare, sigmorphon

SOURCES: dict[str, tuple[Source | Bundle, ...]] = {
    "bccd": cells.SOURCES,
    "cmudict": cmudict.SOURCES,
    "cora": cora.SOURCES,
    "fashion_mnist": tuple(fashion.SOURCES.values()),
    "fsdd": spoken.SOURCES,
    "multi30k": tuple(multi30k.SOURCES.values()),
    "scan": tuple(scan.SOURCES.values()),
    "sigmorphon2020_g2p": tuple(sigmorphon.SOURCES.values()),
    "text_classification": tuple(sentences.SOURCES.values()),
    "tiny_shakespeare": shakespeare.SOURCES,
}


def data(names: Iterable[str] = ()) -> Iterator[tuple[str, str, str, str | None]]:
    """Verifies the files of data sets, and fetches those that are missing.

    Args:
      names: names of data sets. If there are none, all data sets are used.

    Returns:
      An iterator of (set, file, status, path), one for each file. The status is "verified" or "fetched". If a file
      cannot be had, the status is the error message and the path is None.

    Raises:
      TypeError: if `names` is a single text.
      ValueError: if a data set is not known.
    """
    if isinstance(names, str):
        raise TypeError(f"names must be an iterable of names, got {names!r}; pass [{names!r}]")
    names = list(names) or list(SOURCES)
    for name in names:
        check("data", name, SOURCES)
    return (_find(source) for name in names for source in SOURCES[name])


def _find(source: Source | Bundle) -> tuple[str, str, str, str | None]:
    """Returns the row of `data` for one source."""
    try:
        path, status = (source.find()[0], "verified") if isinstance(source, Bundle) else find(source)
    except DataError as error:
        return source.set, source.file, str(error), None
    return source.set, source.file, status, str(path)
