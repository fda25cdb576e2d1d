"""What a reader needs to repeat a run: versions, device, system and settings."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import attnlab
from attnlab.system import settings
from attnlab.system.cores import cores

PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy")


def environment() -> dict[str, Any]:
    """What a reader needs to repeat a run, and nothing about who ran it or where.

    Versions; `platform` and `device` as jax names them ("cpu", "gpu"); the cores this process may use; the
    system and its instruction set; where it is no CPU, `matmul_precision`, in which jax takes float32 products; and
    the settings of jax that change numbers (`attnlab.system.settings`). Imports jax.
    """
    import jax

    device = jax.devices()[0]
    # By default an accelerator rounds their factors: to 10 bits on a GPU with tensor cores, to 7 on a TPU.
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
