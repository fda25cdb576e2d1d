"""The settings of jax that a run depends on: recorded with it, compared when it continues, refused where none can work.

Each is a name of `jax.config`; the environment variable that sets it is the same name in capitals.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from enum import Enum
from typing import Any

# What changes numbers by more than their rounding: precision, and what random keys draw.
NUMBERS = (
    "jax_enable_x64", "jax_explicit_x64_dtypes", "jax_default_prng_impl", "jax_threefry_partitionable",
    "jax_random_seed_offset", "jax_high_dynamic_range_gumbel",
)  # fmt: skip
SHAPES = ("jax_enable_x64", "jax_default_prng_impl")  # those that decide which arrays a checkpoint holds
# Settings with the values under which attnlab works.
WORKING: dict[str, tuple] = {
    "jax_no_tracing": (False,),
    "jax_no_execution": (False,),
    "jax_debug_infs": (False,),  # scores that a mask forbids are −inf
    "jax_transfer_guard": (None, "allow", "log"),
    "jax_transfer_guard_host_to_device": (None, "allow", "log"),
    "jax_transfer_guard_device_to_host": (None, "allow", "log"),
    "jax_error_checking_behavior_nan": ("ignore",),
    "jax_error_checking_behavior_divide": ("ignore",),
    "jax_error_checking_behavior_oob": ("ignore",),
}
# Settings with the values under which it trains; everything else works under others too.
TRAINING: dict[str, tuple] = {
    "jax_disable_jit": (False,),  # programs are compiled ahead of time
    "jax_debug_key_reuse": (False,),
    "jax_numpy_dtype_promotion": ("standard",),
}
PATHS = re.compile(r"/|\\|dump")  # flags of XLA that name a place on this machine change no number
TRIED = "ATTNLAB_XLA_FLAGS"  # holds the flags that XLA was seen to accept


def check(training: bool = False) -> None:
    """Raise ValueError, naming the variable, where jax cannot compute as it is set, or where `training` cannot.

    To be called before the data are loaded. Imports jax, and finds its devices.
    """
    check_flags()
    import jax

    for name, values in (WORKING | TRAINING if training else WORKING).items():
        if (now := value(jax.config, name, values[0])) not in values:
            doing = "train" if name in TRAINING else "compute"
            raise ValueError(f"{name.upper()}={_text(now)}: attnlab cannot {doing} under it; unset {name.upper()}")
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:
        raise ValueError(_no_device(jax.config, error)) from error


def numbers() -> dict[str, Any]:
    """The settings that change numbers, by name, and the flags given to XLA, without those that name places."""
    import jax

    found = {name: value(jax.config, name, None) for name in NUMBERS}
    flags = sorted(flag for flag in os.environ.get("XLA_FLAGS", "").split() if not PATHS.search(flag))
    return {name: now for name, now in found.items() if now is not None} | {"xla_flags": " ".join(flags)}


def refuse_others(run: Any, record: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise ValueError where a run was made under other settings than `now`: its numbers would be others from here on.

    `record` is what its `environment.json` holds. What it does not tell, as those of older runs do not, is not
    compared.
    """
    before = _last(record)
    both = [name for name in (*NUMBERS, "matmul_precision") if name in before and name in now]
    found = [name for name in both if before[name] != now[name]]
    if found:
        variables = {name: name.upper() for name in found} | {"matmul_precision": "JAX_DEFAULT_MATMUL_PRECISION"}
        told = " and ".join(f"{variables[name]}={_text(before[name])}, now {_text(now[name])}" for name in found)
        needed = " ".join(f"{variables[name]}={_text(before[name])}" for name in found)
        raise ValueError(
            f"{run} was made under {told}: set {needed} to use it, or take another --out DIR to train anew"
        )


def mixed(records: dict[str, dict[str, Any]]) -> list[str]:
    """Under what different settings the runs of a study were made, a line each; `records` are theirs by variant."""
    lines = []
    for name in (*NUMBERS, "matmul_precision", "xla_flags", "platform"):
        by_value: dict[str, list[str]] = {}
        for variant, record in records.items():
            if name in (last := _last(record)):
                by_value.setdefault(_text(last[name]) or "empty", []).append(variant)
        if len(by_value) > 1:
            lines.append(f"{name} is " + ", ".join(f"{now} in {_some(names)}" for now, names in by_value.items()))
    return lines


def value(config: Any, name: str, otherwise: Any) -> Any:
    """What a setting of jax is, as text or number; `otherwise` in a version of jax that lacks it."""
    found = getattr(config, name, otherwise)
    return found.name.lower() if isinstance(found, Enum) else found


def _last(record: dict[str, Any]) -> dict[str, Any]:
    """What a run continued with last."""
    later = record.get("later")
    return later[-1] if isinstance(later, list) and later and isinstance(later[-1], dict) else record


def _some(names: list[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} others"


def _text(now: Any) -> str:
    """A value as the environment variable takes it."""
    return str(int(now)) if isinstance(now, bool) else str(now)


def _no_device(config: Any, error: Exception) -> str:
    for name in ("jax_platforms", "jax_platform_name"):
        if asked := getattr(config, name, None):
            unset = f"unset {name.upper()}, or set {name.upper()}=cpu"
            return f"{name.upper()}={asked}: jax finds no such device here ({_short(error)}); {unset}"
    return f"jax finds no device: {_short(error)}"


def check_flags() -> None:
    """Raise ValueError for flags that XLA does not know, which would end the process: another process tries them."""
    flags = os.environ.get("XLA_FLAGS", "").strip()
    if not flags or os.environ.get(TRIED) == flags:
        return
    # On the CPU alone: the memory of an accelerator is not taken for it.
    code = "import os; os.environ['JAX_PLATFORMS'] = 'cpu'; import jax; jax.devices()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode and (at := done.stderr.rfind("XLA_FLAGS")) >= 0:
        begin = done.stderr.rfind("]", 0, at) + 1
        said = done.stderr[begin:].split("\n")[0].strip()
        raise ValueError(f"XLA_FLAGS={flags}: XLA refuses it ({said}); unset XLA_FLAGS, or leave that flag out")
    os.environ[TRIED] = flags


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
