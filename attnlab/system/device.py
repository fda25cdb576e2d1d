"""Where a run computes."""

import os

from attnlab import registry
from attnlab.system import settings

# What installs jax for each.
EXTRAS = {"cpu": "jax", "gpu": "jax[cuda13]", "tpu": "jax[tpu]"}


def use(device: str | None, processes: int = 1) -> None:
    """Compute on the CPU, the GPU or the TPU; None leaves it to jax. Must come before the first array.

    Where several `processes` are to compute there, each takes an accelerator's memory as it needs it
    (`allocate_on_demand`).
    Raises ValueError for what is not known, and for what is not there, naming what to install.
    """
    if processes > 1:
        allocate_on_demand()
    if device is None:
        return
    extra = registry.pick(EXTRAS, device, "--device")
    settings.check_flags()
    import jax

    before = jax.config.jax_platforms  # pyright: ignore[reportAttributeAccessIssue]
    # Left to itself jax takes the accelerator that is there; only the CPU needs to be asked for.
    jax.config.update("jax_platforms", "cpu" if device == "cpu" else None)
    try:
        jax.devices(device)
    except (RuntimeError, AssertionError) as error:
        jax.config.update("jax_platforms", before)
        raise ValueError(
            f'--device {device}: jax finds none here; where there is one: pip install "{extra}"'
        ) from error


def allocate_on_demand() -> None:
    """Have this process, and those it starts, take of an accelerator's memory what they need.

    Of itself jax's first array takes three quarters at once; a process that has made one keeps them.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
