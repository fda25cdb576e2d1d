"""The folder for what can be fetched or computed again."""

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """Return `$XDG_CACHE_HOME/attnlab`, or else `~/.cache/attnlab`. None if the home folder is not known."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnlab"
    except RuntimeError:
        return None
