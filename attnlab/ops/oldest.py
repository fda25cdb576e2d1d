"""The oldest jax that attnlab works with."""

OLDEST = (0, 10, 2)


class OldJaxError(ImportError):
    """The jax that is installed is too old."""

    exit_code = 2


def require(installed: tuple[int, ...]) -> None:
    """Raise OldJaxError, in one line, for a version of jax that is older than `OLDEST`.

    >>> require((0, 10, 2))
    """
    if installed < OLDEST:
        oldest, found = (".".join(map(str, version)) for version in (OLDEST, installed))
        raise OldJaxError(f"attnlab needs jax {oldest} or newer, and {found} is installed: pip install 'jax>={oldest}'")
