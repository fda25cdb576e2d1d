"""All functions of other libraries with which ours are compared."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.bench.peer_parity import (
    dot_product,
    jla,
    transformers,
    transformers_language,
    transformers_linear,
    transformers_modules,
    transformers_softmax,
)
from attnlab.bench.peer_parity.comparison import PeerFunction

_MECHANISMS = (dot_product, jla, transformers, transformers_modules)
_MODULES = (transformers_linear, transformers_softmax, transformers_language)
_FILES = (*_MECHANISMS, *_MODULES)
FUNCTIONS: tuple[PeerFunction, ...] = tuple(each for file in _FILES for each in file.FUNCTIONS)
INSTALL = "pip install .[parity] in a checkout installs them"


def choose(names: Sequence[str], functions: Sequence[PeerFunction]) -> tuple[list[PeerFunction], list[str]]:
    """Choose the functions that compute some of ours.

    Args:
        names: The names of ours, or none for all.
        functions: The functions to choose from.

    Returns:
        The functions of installed packages, and the names of the packages that are not installed.

    Raises:
        ValueError: No function computes one of the names, or none of the packages is installed.
    """
    known = list(dict.fromkeys(each.ours.name for each in functions))
    for name in names:
        if name not in known:
            raise ValueError(f"no other library is known to compute {name!r}; compared are: {', '.join(known)}")
    chosen = [each for each in functions if not names or each.ours.name in names]
    missing = sorted({each.package for each in chosen if each.version is None})
    here = [each for each in chosen if each.version is not None]
    if not here:
        raise ValueError(f"nothing to compare, not installed: {', '.join(missing)}; {INSTALL}")
    return here, missing
