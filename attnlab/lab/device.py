"""Where a run computes."""

import os

from attnlab import registry

# What installs jax for each.
EXTRAS = {"cpu": "jax", "gpu": "jax[cuda13]", "tpu": "jax[tpu]"}

# With what a process takes of an accelerator's memory what it needs; jax's first would take three quarters at once, and
# one that has begun without keeps them.
SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def use(device: str | None, processes: int = 1) -> None:
    """Compute on the CPU, the GPU or the TPU; None leaves it to jax. Must come before the first array.

    Where several `processes` are to compute there, each takes an accelerator's memory as it needs it (`SHARED`).
    Raises ValueError for what is not known, and for what is not there, naming what to install.
    """
    if processes > 1:
        for name, value in SHARED.items():
            os.environ.setdefault(name, value)
    if device is None:
        return
    extra = registry.pick(EXTRAS, device, "--device")
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
