"""The environment of a run, for reproducing it: versions, device, system and settings."""

from __future__ import annotations

import platform
from importlib.metadata import version

import attnlab
from attnlab.storage.json_file import JsonObject
from attnlab.system import settings
from attnlab.system.cores import cores

PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy")


def environment() -> JsonObject:
    """Return what is needed to reproduce a run, and nothing about who ran it or where. Imports jax.

    Returns:
        A dict with the versions of the packages; `platform` and `device` as jax names them, for example "cpu" or "gpu";
        `cores`, the number of cores that this process may use; `machine`, the system and its instruction set;
        `matmul_precision` of float32 products, except on a CPU; and the settings of jax that change numbers (see
        `attnlab.system.settings`).
    """
    import jax

    device = jax.devices()[0]
    # By default an accelerator rounds the factors of a product: to 10 bits on a GPU with tensor cores, to 7 on a TPU.
    rounded = jax.config.jax_default_matmul_precision or "default"  # pyright: ignore[reportAttributeAccessIssue]
    return {
        "attnlab": attnlab.__version__,
        **{package: version(package) for package in PACKAGES},
        "python": platform.python_version(),
        "platform": device.platform,
        "device": device.device_kind,
        "cores": len(cores()),
        "machine": f"{platform.system()} {platform.machine()}",
        **({} if device.platform == "cpu" else {"matmul_precision": rounded}),
        **settings.numbers(),
    }
