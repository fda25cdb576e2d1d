"""Compiled programs are kept on disk, by jax's persistent compilation cache, and are not compiled again."""

from __future__ import annotations

import os
import platform
import tempfile
import warnings
import zlib
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from attnlab.storage.cache_folder import cache_folder
from attnlab.system import settings

LIMIT = 1 << 30  # bytes of all programs together; beyond it the oldest are deleted
SHORTEST = 0.1  # seconds; what compiles faster is not kept


def enable() -> str | None:
    """Turn on jax's persistent compilation cache, unless settings of jax forbid it or name another folder.

    The folder is `compiled` in the user's cache folder. Each version of jaxlib and each kind of processor has a folder
    of its own, so that a program is only read by the version and on the kind of machine that compiled it.

    Returns:
        None, or a line that says why programs are not kept.
    """
    import jax

    ignore_failures()
    if not settings.value(jax.config, "jax_enable_compilation_cache", True):
        return None
    if settings.value(jax.config, "jax_compilation_cache_dir", None):
        return None if (named := folder()) is None else _trouble(named)
    if (home := cache_folder()) is None:
        return None
    mine = home / "compiled" / kind()
    if trouble := _trouble(mine, mode=0o700):
        return trouble
    try:
        trim(home / "compiled", LIMIT)
    except OSError as error:
        return _not_kept(mine, error)
    if others_may_write(mine):
        return f"compiled programs are not kept: other users can write in {mine}; run chmod go-w {mine}"
    jax.config.update("jax_compilation_cache_dir", str(mine))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST)
    return None


def ignore_failures() -> None:
    """Ignore jax's warnings about single programs in this process.

    A damaged entry is compiled again, and what cannot be written is not kept. Neither concerns the user.
    """
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")


def _trouble(folder: Path, mode: int = 0o777) -> str | None:
    """Make a folder, and return a line that says why nothing can be written in it, or None."""
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return _not_kept(folder, error)
    return None


def _not_kept(folder: Path, error: OSError) -> str:
    return f"compiled programs are not kept: {error.filename or folder}: {error.strerror or error}"


def disable() -> None:
    """Turn the cache off again, if `enable` turned it on. A folder that settings of jax name stays in use."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    ignore_failures()
    folder, home = settings.value(jax.config, "jax_compilation_cache_dir", None), cache_folder()
    if home is not None and folder == str(home / "compiled" / kind()):
        jax.config.update("jax_compilation_cache_dir", None)
        compilation_cache.reset_cache()  # jax reads the setting only once


def folder() -> Path | None:
    """Return the folder in which jax keeps compiled programs on this machine, or None if it keeps none there."""
    import jax

    if not settings.value(jax.config, "jax_enable_compilation_cache", True):
        return None
    found = settings.value(jax.config, "jax_compilation_cache_dir", None)
    return Path(found) if isinstance(found, str) and found and "://" not in found else None


def trim(folder: Path, limit: int) -> None:
    """Delete the programs that were read or written least recently, until those left have at most `limit` bytes.

    Args:
        folder: The folder that contains the programs, in folders of any depth.
        limit: The number of bytes.
    """
    found = []
    for path in folder.rglob("*-cache"):
        with suppress(FileNotFoundError):  # another process has deleted it
            status = path.stat()
            found.append((max(status.st_atime, status.st_mtime), status.st_size, path))
    size = sum(size for _, size, _ in found)
    for _, freed, path in sorted(found):
        if size <= limit:
            return
        path.unlink(missing_ok=True)
        size -= freed


def others_may_write(folder: Path) -> bool:
    """Return whether other users can write in a folder. Compiled programs are code that is executed."""
    if not hasattr(os, "getuid"):  # not on this system
        return False
    status = folder.stat()
    return status.st_uid != os.getuid() or bool(status.st_mode & 0o022)


def kind() -> str:
    """Return a name of what a program is compiled by and for: the version of jaxlib, and the instruction set."""
    features = platform.processor()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        features = next((line for line in lines if line.startswith(("flags", "Features"))), features)
    return f"jaxlib-{version('jaxlib')}-{platform.machine()}-{zlib.crc32(features.encode()):08x}"
