"""Select the device to compute on."""

import os

from attnlab import registry
from attnlab.system import settings

# The package that installs jax for each device.
EXTRAS = {"cpu": "jax", "gpu": "jax[cuda13]", "tpu": "jax[tpu]"}


def use(device: str | None, processes: int = 1) -> None:
    """Select the device to compute on. Must be called before the first array is made.

    Args:
        device: "cpu", "gpu" or "tpu". None leaves the choice to jax.
        processes: How many processes will compute on it. With several, each takes an accelerator's memory only as
            needed (see `allocate_on_demand`).

    Raises:
        ValueError: The device is unknown or not present. The message names what to install.
    """
    if processes > 1:
        allocate_on_demand()
    if device is None:
        return
    extra = registry.pick(EXTRAS, device, "--device")
    settings.check_flags()
    import jax

    before = jax.config.jax_platforms  # pyright: ignore[reportAttributeAccessIssue]
    # By default jax uses an accelerator if it finds one, so only the CPU needs to be requested.
    jax.config.update("jax_platforms", "cpu" if device == "cpu" else None)
    try:
        jax.devices(device)
    except (RuntimeError, AssertionError) as error:
        jax.config.update("jax_platforms", before)
        raise ValueError(
            f'--device {device}: jax finds no {device} here; if there is one, run pip install "{extra}"'
        ) from error


def allocate_on_demand() -> None:
    """Make this process and its children allocate an accelerator's memory on demand.

    By default jax's first array reserves three quarters of the memory at once. A process that already has an array
    keeps its reservation.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
