"""Where a run computes."""

from attnlab import registry

# What installs jax for each.
EXTRAS = {"cpu": "jax", "gpu": "jax[cuda13]", "tpu": "jax[tpu]"}


def use(device: str | None) -> None:
    """Compute on the CPU, the GPU or the TPU; None leaves it to jax. Must come before the first array.

    Raises ValueError for what is not known, and for what is not there, naming what to install.
    """
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
