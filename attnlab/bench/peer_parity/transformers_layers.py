"""What whole layers and models of Hugging Face's transformers need: our parameters under their names, masks, caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from attnlab.bench.peer_parity.comparison import KnownDifference, PeerFunction
from attnlab.bench.peer_parity.evaluation import evaluate_in_torch
from attnlab.bench.peer_parity.layers import ModuleSubject
from attnlab.bench.peer_parity.transformers import PACKAGE, Named, Tensor, torch

Weights = Callable[[Named], dict[str, Tensor]]
"""Returns the parameters of their module, by the names that it gives them, from ours."""
Call = Callable[..., Tensor]
"""call(module, x, mask, places, cache): their output for inputs at some places.

The mask is False for padding [B S], or None.
"""


def record(
    ours: ModuleSubject,
    function: str,
    create: Callable[[], Tensor],
    weights: Weights,
    call: Call,
    known_differences: Mapping[str, KnownDifference] | None = None,
) -> PeerFunction:
    """Return the record of a module: whole, with padding, and token by token from its cache.

    Args:
        ours: What it is compared with.
        function: The name of its class.
        create: Creates it.
        weights: Maps our parameters to its own.
        call: Calls it.
        known_differences: Known differences, by form.
    """

    def loaded(x: Named) -> Tensor:
        """Return a module whose forward pass uses our parameters, so that gradients reach them."""
        module = create().to(x["x"].dtype if x["x"].is_floating_point() else torch().float32).eval()
        return Loaded(module, weights(x))

    def whole(x: Named) -> Tensor:
        places = torch().arange(x["x"].shape[1])
        return call(loaded(x), x["x"], x.get("keep"), places, None)

    def steps(x: Named) -> Tensor:
        module, outputs = loaded(x), []
        cache = import_module("transformers").DynamicCache(config=module.config)
        for t in range(x["x"].shape[1]):
            outputs.append(call(module, x["x"][:, t : t + 1], None, torch().arange(t, t + 1), cache))
        return torch().cat(outputs, dim=1)

    forms = lambda: {"whole": whole, "padded": whole, "steps": steps}
    return PeerFunction(ours, PACKAGE, function, forms, evaluate_in_torch, "float32", known_differences or {})


class Loaded:
    """A module of torch with parameters in place of its own."""

    def __init__(self, module: Tensor, weights: dict[str, Tensor]):
        known = dict(module.named_parameters())
        if missing := sorted(set(known) ^ set(weights)):
            raise ValueError(f"parameters that only one side has: {', '.join(missing)}")
        self.module, self.weights, self.config = module, weights, module.config

    def __call__(self, *arguments: Tensor, **options: Tensor) -> Tensor:
        """Call the module."""
        return torch().func.functional_call(self.module, self.weights, args=arguments, kwargs=options, strict=False)


def linear(x: Named, *names: str) -> Tensor:
    """Return the weight [outputs, inputs] of one linear map that computes several of ours."""
    return torch().cat([x[f"{name}.w"] for name in names], dim=1).T


def by_head(x: Named, heads: int, *names: str) -> Tensor:
    """Return the weight of one linear map whose outputs are ordered by head, and within a head by name."""
    maps = [x[f"{name}.w"].unflatten(1, (heads, -1)) for name in names]
    return torch().cat(maps, dim=2).flatten(1).T


def convolution(x: Named, sizes: list[int] | None = None) -> Tensor:
    """Return the kernels [C, 1, N], the last for the newest token.

    Args:
        x: Named arrays.
        sizes: The numbers of channels of our q, k and v, if theirs are in the reverse order.
    """
    kernels = x["convolution.w"].flip(0).T
    return turned_round(kernels, sizes)[:, None]


def turned_round(x: Tensor, sizes: list[int] | None) -> Tensor:
    """Return the parts of an array in reverse order, or the array itself if their sizes are not given."""
    return x if sizes is None else torch().cat(list(x.split(sizes))[::-1])
