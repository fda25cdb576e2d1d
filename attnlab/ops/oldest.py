"""The oldest version of jax that attnlab supports."""

OLDEST = (0, 10, 2)


class OldJaxError(ImportError):
    """Raised if the installed jax is too old."""

    exit_code = 2


def check_jax_version(installed: tuple[int, ...]) -> None:
    """Checks the version of jax.

    Raises:
      OldJaxError: if the version is older than `OLDEST`.

    >>> check_jax_version((0, 10, 2))
    """
    if installed < OLDEST:
        oldest, found = (".".join(map(str, version)) for version in (OLDEST, installed))
        raise OldJaxError(f"attnlab needs jax {oldest} or newer, and {found} is installed: pip install 'jax>={oldest}'")
