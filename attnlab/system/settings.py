"""The settings of jax that a run depends on.

They are recorded with a run and compared when it continues. Settings under which attnlab cannot work are refused. Each
is a name of `jax.config`. The environment variable that sets it is the same name in capitals.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from enum import Enum
from pathlib import Path

from attnlab.storage.json_file import JsonObject

Setting = bool | int | float | str | None

# The settings that change results by more than rounding: precision, and the values that random keys draw.
NUMBERS = (
    "jax_enable_x64", "jax_explicit_x64_dtypes", "jax_default_prng_impl", "jax_threefry_partitionable",
    "jax_random_seed_offset", "jax_high_dynamic_range_gumbel",
)  # fmt: skip
SHAPES = ("jax_enable_x64", "jax_default_prng_impl")  # those that change the arrays of a checkpoint
# Settings, each with the values under which attnlab works.
WORKING: dict[str, tuple] = {
    "jax_no_tracing": (False,),
    "jax_no_execution": (False,),
    "jax_debug_infs": (False,),  # masked scores are −inf
    "jax_transfer_guard": (None, "allow", "log"),
    "jax_transfer_guard_host_to_device": (None, "allow", "log"),
    "jax_transfer_guard_device_to_host": (None, "allow", "log"),
    "jax_error_checking_behavior_nan": ("ignore",),
    "jax_error_checking_behavior_divide": ("ignore",),
    "jax_error_checking_behavior_oob": ("ignore",),
}
# Settings, each with the values under which training works. Everything else works with other values too.
TRAINING: dict[str, tuple] = {
    "jax_disable_jit": (False,),  # programs are compiled ahead of time
    "jax_debug_key_reuse": (False,),
    "jax_numpy_dtype_promotion": ("standard",),
}
PATHS = re.compile(r"/|\\|dump")  # XLA flags with a path do not change results
TRIED = "ATTNLAB_XLA_FLAGS"  # holds the flags that XLA is known to accept


def check(training: bool = False) -> None:
    """Check that jax can compute with its current settings. Imports jax and initializes its devices.

    Call it before the data are loaded, so that an error is reported early.

    Args:
        training: Whether to check the settings that training needs, too.

    Raises:
        ValueError: A setting prevents it, or jax finds no device. The message names the variable.
    """
    check_flags()
    import jax

    for name, values in (WORKING | TRAINING if training else WORKING).items():
        if (now := value(jax.config, name, values[0])) not in values:
            doing = "train" if name in TRAINING else "compute"
            raise ValueError(f"attnlab cannot {doing} with {name.upper()}={_text(now)}; unset {name.upper()}")
    if (error := _refusal(None)) is not None:
        raise ValueError(_no_device(error)) from error
    default = value(jax.config, "jax_default_device", None)
    if isinstance(default, str) and (error := _refusal(default)) is not None:
        raise ValueError(_lacks("JAX_DEFAULT_DEVICE", default, error)) from error


def numbers() -> dict[str, bool | int | float | str]:
    """Return the settings that change results, by name, and the flags of XLA except those that contain paths."""
    import jax

    found = {name: value(jax.config, name, None) for name in NUMBERS}
    flags = sorted(flag for flag in os.environ.get("XLA_FLAGS", "").split() if not PATHS.search(flag))
    return {name: now for name, now in found.items() if now is not None} | {"xla_flags": " ".join(flags)}


def refuse_others(run: str | Path, record: JsonObject, now: JsonObject) -> None:
    """Check that a run was made under the settings `now`. Otherwise its results would change from here on.

    Args:
        run: The run, for the message.
        record: The contents of its `environment.json`. Settings that it lacks, as in older runs, are not compared.
        now: The current settings.

    Raises:
        ValueError: A setting differs. The message says how to set it.
    """
    before = _last(record)
    both = [name for name in (*NUMBERS, "matmul_precision") if name in before and name in now]
    found = [name for name in both if before[name] != now[name]]
    if found:
        variables = {name: name.upper() for name in found} | {"matmul_precision": "JAX_DEFAULT_MATMUL_PRECISION"}
        changes = " and ".join(f"{variables[name]}={_text(before[name])}, now {_text(now[name])}" for name in found)
        needed = " ".join(f"{variables[name]}={_text(before[name])}" for name in found)
        raise ValueError(
            f"{run} was made with {changes}; set {needed} to use it, or train again with another --out DIR"
        )


def mixed(records: dict[str, JsonObject]) -> list[str]:
    """Describe the settings in which the runs of a study differ, one line each.

    Args:
        records: The contents of `environment.json` by variant.
    """
    lines = []
    for name in (*NUMBERS, "matmul_precision", "xla_flags", "platform"):
        by_value: dict[str, list[str]] = {}
        for variant, record in records.items():
            if name in (last := _last(record)):
                by_value.setdefault(_text(last[name]) or "empty", []).append(variant)
        if len(by_value) > 1:
            lines.append(f"{name} is " + ", ".join(f"{now} in {_some(names)}" for now, names in by_value.items()))
    return lines


def value(config: object, name: str, otherwise: Setting) -> Setting:
    """Return a setting of jax as text or number, or `otherwise` if this version of jax lacks it.

    Args:
        config: The configuration of jax, `jax.config`.
        name: The name of the setting.
        otherwise: The value if there is no such setting.
    """
    found = getattr(config, name, otherwise)
    return found.name.lower() if isinstance(found, Enum) else found


def _last(record: JsonObject) -> JsonObject:
    """Return the environment in which a run was last continued."""
    later = record.get("later")
    return later[-1] if isinstance(later, list) and later and isinstance(later[-1], dict) else record


def _some(names: list[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} others"


def _text(now: object) -> str:
    """Format a value as the environment variable expects it."""
    return str(int(now)) if isinstance(now, bool) else str(now)


def _refusal(platform: str | None) -> Exception | None:
    """Return the error of jax if it has no devices of a platform, or of its default platform. Otherwise None."""
    import jax

    try:
        jax.devices(platform)
    except (RuntimeError, AssertionError) as error:
        return error
    return None


def _no_device(error: Exception) -> str:
    """Return the message for a default platform without devices. It names the variable that asks for the platform."""
    import jax

    platforms = value(jax.config, "jax_platforms", None) or ""
    # jax reads this variable only from the environment. It chooses among the platforms of the other.
    name = os.environ.get("JAX_PLATFORM_NAME", "")
    if name and _refusal(str(platforms).split(",")[0] or "cpu") is None:
        return _lacks("JAX_PLATFORM_NAME", name, error)
    return _lacks("JAX_PLATFORMS", platforms, error) if platforms else f"jax finds no device: {_short(error)}"


def _lacks(variable: str, asked: Setting, error: Exception) -> str:
    unset = f"unset {variable}, or set {variable}=cpu"
    return f"{variable}={asked}: jax finds no such device ({_short(error)}); {unset}"


def check_flags() -> None:
    """Check that XLA accepts `XLA_FLAGS`. A child process tries them, because an unknown flag ends the process.

    Raises:
        ValueError: XLA rejects a flag.
    """
    flags = os.environ.get("XLA_FLAGS", "").strip()
    if not flags or os.environ.get(TRIED) == flags:
        return
    # The child uses only the CPU, so that it reserves no memory of an accelerator.
    code = "import os; os.environ['JAX_PLATFORMS'] = 'cpu'; import jax; jax.devices()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode and (at := done.stderr.rfind("XLA_FLAGS")) >= 0:
        begin = done.stderr.rfind("]", 0, at) + 1
        reason = done.stderr[begin:].split("\n")[0].strip()
        raise ValueError(f"XLA rejects XLA_FLAGS={flags} ({reason}); unset XLA_FLAGS, or remove that flag")
    os.environ[TRIED] = flags


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
