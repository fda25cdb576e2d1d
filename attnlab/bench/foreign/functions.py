"""All functions of other libraries with which ours are compared."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.bench.foreign import jax_nn, jla, transformers, transformers_modules
from attnlab.bench.foreign.comparison import ForeignFunction

_FILES = (jax_nn, jla, transformers, transformers_modules)
FUNCTIONS: tuple[ForeignFunction, ...] = tuple(each for file in _FILES for each in file.FUNCTIONS)
INSTALL = "pip install 'attnlab[peers]' installs them"


def missing(functions: Sequence[ForeignFunction]) -> list[str]:
    """Return the packages of the functions that are not installed."""
    return sorted({each.package for each in functions if each.version is None})


def installed(names: Sequence[str], functions: Sequence[ForeignFunction] = FUNCTIONS) -> list[ForeignFunction]:
    """Return the functions of installed packages that compute what these of ours compute.

    Args:
        names: The names of ours, or none for all.
        functions: The functions to choose from.

    Raises:
        ValueError: No function computes one of the names, or none that does is installed.
    """
    known = list(dict.fromkeys(each.ours.name for each in functions))
    for name in names:
        if name not in known:
            raise ValueError(f"no other library is known to compute {name!r}; compared are: {', '.join(known)}")
    chosen = [each for each in functions if not names or each.ours.name in names]
    here = [each for each in chosen if each.version is not None]
    if not here:
        raise ValueError(f"nothing to compare, not installed: {', '.join(missing(chosen))}; {INSTALL}")
    return here
