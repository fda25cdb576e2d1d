"""Evaluation of functions of named arrays, and of their gradients, in jax and in torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

Arrays = dict[str, np.ndarray]
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Options of the compiler: programs run once, so that compiling them takes nearly all of the time."""


def evaluate_in_jax(run: Callable, arrays: Arrays, target: np.ndarray | None) -> tuple[np.ndarray, Arrays]:
    """Evaluate a function in jax, in the precision of the arrays.

    Args:
        run: A function from named arrays to outputs.
        arrays: The arrays by name. Gradients are taken with respect to those of floating-point numbers.
        target: The cotangent of the outputs, or None to take no gradients.

    Returns:
        The outputs, and the gradients by name.
    """
    floats = {name: x for name, x in arrays.items() if x.dtype.kind == "f"}
    rest = {name: x for name, x in arrays.items() if name not in floats}
    wide = any(x.dtype == np.float64 for x in floats.values())
    # By default, accelerators compute float32 products with fewer digits.
    precision = jax.default_matmul_precision("float32")
    with jax.enable_x64(wide), precision, jax.numpy_rank_promotion("allow"):
        if target is None:
            return np.asarray(_apply(run, floats, rest)), {}
        y, gradients = _differentiate(run, floats, rest, target)
        return np.asarray(y), {name: np.asarray(x) for name, x in gradients.items()}


@partial(jax.jit, static_argnums=0, compiler_options=QUICKLY)
def _apply(run: Callable, floats: dict[str, Array], rest: dict[str, Array]) -> Array:
    """Return the outputs of a function of named arrays."""
    return run(rest | floats)


@partial(jax.jit, static_argnums=0, compiler_options=QUICKLY)
def _differentiate(run: Callable, floats: dict[str, Array], rest: dict[str, Array], target: Array) -> tuple:
    """Return the outputs and the gradients of a function of named arrays."""
    y, pull_back = jax.vjp(lambda floats: run(rest | floats), floats)
    return y, pull_back(target)[0]


def evaluate_in_torch(run: Callable, arrays: Arrays, target: np.ndarray | None) -> tuple[np.ndarray, Arrays]:
    """Evaluate a function in torch, on the CPU. See `evaluate_in_jax`.

    Args:
        run: A function from named tensors to a tensor of outputs.
        arrays: The arrays by name. Gradients are taken with respect to those of floating-point numbers.
        target: The cotangent of the outputs, or None to take no gradients.

    Returns:
        The outputs, and the gradients by name.
    """
    torch: Any = import_module("torch")
    tensors = {name: torch.from_numpy(x.copy()) for name, x in arrays.items()}
    leaves = {name: x.requires_grad_() for name, x in tensors.items() if x.is_floating_point() and target is not None}
    with torch.set_grad_enabled(target is not None):
        y = run(tensors)
    if target is None:
        return y.numpy(), {}
    gradients = torch.autograd.grad(y, list(leaves.values()), torch.from_numpy(target), materialize_grads=True)
    return y.detach().numpy(), {name: x.numpy() for name, x in zip(leaves, gradients, strict=True)}
