"""Functions and modules of Hugging Face's transformers, on the CPU, in float32 unless they compute in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from operator import attrgetter
from types import ModuleType, SimpleNamespace
from typing import Any

from attnlab.bench.peer_parity.comparison import DIGITS, PeerFunction
from attnlab.bench.peer_parity.evaluation import evaluate_in_torch
from attnlab.bench.peer_parity.subjects import MLSTM, MechanismSubject, subject
from attnlab.mechanisms.gated_delta import GatedDelta
from attnlab.mechanisms.window import Local

PACKAGE = "transformers"
CHUNK = 14  # several chunks in a short sequence, which some functions want to divide it
Tensor = Any  # torch is not installed with attnlab
Named = Mapping[str, Tensor]
Run = Callable[[Named], Tensor]


def torch() -> ModuleType:
    """Import torch."""
    return import_module("torch")


def model(name: str) -> ModuleType:
    """Import the file of a model, without a line about each kernel that is not installed."""
    library = import_module("transformers")
    library.logging.set_verbosity_error()
    return attrgetter(f"{name}.modeling_{name}")(library.models)


def record(
    ours: MechanismSubject,
    function: str,
    forms: Callable[[], Mapping[str, Run]],
    dtype: str = "float32",
    digits: bool = False,
) -> PeerFunction:
    """Return the record of a function or module, which may lose digits at extreme gates. See `PeerFunction`.

    Args:
        ours: The mechanism that it is compared with.
        function: The name of the function or module in transformers.
        forms: Imports it, and returns functions of named tensors, by form.
        dtype: The dtype that it computes in: "float32" (default) or "float64".
        digits: Whether it is known to lose digits at extreme gates, as `DIGITS` describes. Default: False.
    """
    known = {"extreme": DIGITS} if digits else {}
    return PeerFunction(ours, PACKAGE, function, forms, evaluate_in_torch, dtype, known)


def by_token(named: Named, step: Callable[[Named, int, Tensor], tuple[Tensor, Tensor]], state: Tensor) -> Tensor:
    """Return the outputs [B T …] of step(arrays, t, state) -> (output, state).

    Args:
        named: The tensors by name. "q" [B T …] gives the number of tokens.
        step: Computes the output [B …] of token t, and the state after it.
        state: The state before the first token, or None if `step` needs none.
    """
    outputs = []
    for t in range(named["q"].shape[1]):
        y, state = step(named, t, state)
        outputs.append(y)
    return torch().stack(outputs, dim=1)


def _decay(x: Named) -> Tensor:
    """Return −e^rate softplus(dt + shift) of one gate per token [B T H] or per channel [B T H K]."""
    rate = x["rate"] if x["dt"].dim() == 3 else x["rate"][:, None]
    return -rate.exp() * torch().nn.functional.softplus(x["dt"] + x["shift"])


def _delta(ours: MechanismSubject, name: str, function: str, factor: float = 1.0) -> PeerFunction:
    """Return the record of a gated delta rule: whole, and one token at a time from its own state."""

    def call(x: Named, **more) -> tuple[Tensor, Tensor]:
        rule = getattr(model(name), function)
        gates = {"g": _decay(x), "beta": factor * x["beta"].sigmoid()}
        chunk = {"chunk_size": CHUNK} if "chunk" in function else {}
        more = {"initial_state": None, "output_final_state": False} | more
        return rule(x["q"], x["k"], x["v"], **gates, **chunk, **more, use_qk_l2norm_in_kernel=True)

    def step(x: Named, t: int, state: Tensor) -> tuple[Tensor, Tensor]:
        here = {n: a[:, t : t + 1] if n in ("q", "k", "v", "beta", "dt") else a for n, a in x.items()}
        y, state = call(here, initial_state=state, output_final_state=True)
        return y[:, 0], state

    forms = lambda: {"whole": lambda x: call(x)[0], "steps": lambda x: by_token(x, step, None)}
    return record(ours, f"{name}.{function}", forms, digits="chunk" in function)


def _mamba2() -> Iterator[PeerFunction]:
    """Yield the records of the scan by chunks, and of one step."""
    ours = subject("ssd")

    def whole(x: Named) -> Tensor:
        scan, gates = model("mamba2").mamba2_chunk_scan, {"dt_bias": x["shift"], "dt_softplus": True}
        return scan(x["v"], x["dt"], -x["rate"].exp(), x["k"], x["q"], CHUNK, **gates)

    def step(x: Named, t: int, state: Tensor) -> tuple[Tensor, Tensor]:
        values, rates = x["v"][:, t], -x["rate"].exp()[:, None, None].expand(state.shape[1:])
        steps, shifts = x["dt"][:, t, :, None].expand(values.shape), x["shift"][:, None].expand(values.shape[1:])
        inputs = state, values, steps, rates, x["k"][:, t], x["q"][:, t]
        return model("mamba2").mamba2_selective_state_update(*inputs, dt_bias=shifts, dt_softplus=True), state

    def steps(x: Named) -> Tensor:
        B, _, H, V = x["v"].shape
        return by_token(x, step, torch().zeros(B, H, V, x["k"].shape[-1]))

    yield record(ours, "mamba2.mamba2_chunk_scan", lambda: {"whole": whole}, digits=True)
    yield record(ours, "mamba2.mamba2_selective_state_update", lambda: {"steps": steps})


def _mamba() -> Iterator[PeerFunction]:
    """Yield the records of the selective scan, and of one step. There is one group of B and C."""
    ours = subject("mamba", H=1)
    rates = lambda x: -x["rate"][0].exp().T

    def whole(x: Named) -> Tensor:
        v, dt, k, q = (x[name][:, :, 0].transpose(1, 2) for name in ("v", "dt", "k", "q"))
        scan = model("mamba").mamba_selective_scan
        y = scan(v, dt, rates(x), k, q, delta_bias=x["shift"][0], delta_softplus=True)
        return y.transpose(1, 2)[:, :, None]

    def step(x: Named, t: int, state: Tensor) -> tuple[Tensor, Tensor]:
        v, steps, k, q = (x[name][:, t, 0] for name in ("v", "dt", "k", "q"))
        update = model("mamba").mamba_selective_state_update
        y = update(state, v, steps, rates(x), k, q, dt_bias=x["shift"][0], dt_softplus=True)
        return y[:, None], state

    steps = lambda x: by_token(x, step, torch().zeros(len(x["q"]), x["v"].shape[-1], x["k"].shape[-1]))
    yield record(ours, "mamba.mamba_selective_scan", lambda: {"whole": whole})
    yield record(ours, "mamba.mamba_selective_state_update", lambda: {"steps": steps})


def _xlstm() -> Iterator[PeerFunction]:
    """Yield the records of its forms of mLSTM, which compute in float64 if they are asked to."""

    def arguments(x: Named) -> tuple[Tensor, ...]:
        gates = x["write"] + x["write_shift"], x["forget"] + x["forget_shift"]
        return (*(x[name].transpose(1, 2) for name in "qkv"), *(gate.transpose(1, 2).contiguous() for gate in gates))

    def chunks(x: Named) -> Tensor:
        return model("xlstm").mlstm_chunkwise_native_autograd(*arguments(x), chunk_size=CHUNK, eps=0.0)

    def sequence(x: Named) -> Tensor:
        return model("xlstm").mlstm_recurrent_sequence_native(*arguments(x), eps=0.0, dtype_state=torch().float64)

    def step(x: Named, t: int, state: list[Tensor]) -> tuple[Tensor, Tensor]:
        q, k, v, write, forget = (each[:, :, t] for each in arguments(x))
        gates = write[..., None], forget[..., None]
        options = {"eps": 0.0, "dtype_state": torch().float64}
        return model("xlstm").mlstm_recurrent_step_native(q, k, v, *gates, *state, **options)

    def steps(x: Named) -> Tensor:
        (B, _, H, V), K = x["v"].shape, x["k"].shape[-1]
        return by_token(x, step, [torch().zeros(B, H, *shape, dtype=torch().float64) for shape in ((K, V), (K,), (1,))])

    chunks_first = lambda x: chunks(x).transpose(1, 2)
    yield record(MLSTM, "xlstm.mlstm_chunkwise_native_autograd", lambda: {"whole": chunks_first})
    sequence_first = lambda x: sequence(x).transpose(1, 2)
    yield record(MLSTM, "xlstm.mlstm_recurrent_sequence_native", lambda: {"whole": sequence_first}, "float64")
    yield record(MLSTM, "xlstm.mlstm_recurrent_step_native", lambda: {"steps": steps}, "float64")


def masked(call: Callable[[Named, Tensor], Tensor], window: int | None = None) -> dict[str, Run]:
    """Return the forms of softmax attention under the masks that transformers makes: call(arrays, mask)."""
    masks, library = import_module("transformers.masking_utils"), import_module("transformers")
    make = masks.create_causal_mask if window is None else masks.create_sliding_window_causal_mask
    config = library.MistralConfig(attn_implementation="eager", sliding_window=window)

    def mask(x: Named) -> Tensor:
        """Positions that start again tell it where the segments of a row begin."""
        places, keep = None, x.get("keep")
        if "segment" in x:
            same = x["segment"][:, :, None] == x["segment"][:, None, :]
            places = same.tril().sum(2) - 1
        return make(config, x["q"][:, :, 0], None if keep is None else keep.long(), None, position_ids=places)

    return dict.fromkeys(("whole", "packed", "padded"), lambda x: call(x, mask(x)))


def _eager(ours: MechanismSubject, name: str, dtype: str = "float32", window: int | None = None) -> PeerFunction:
    """Return the record of a model's softmax attention: whole, and one query against the keys so far."""

    def call(x: Named, mask: Tensor, queries: slice = slice(None), keys: slice = slice(None)) -> Tensor:
        sinks = {"sinks": x["sink"]} if "sink" in x else {}
        module = SimpleNamespace(num_key_value_groups=1, training=False, **sinks)
        q, k, v = (x[n].transpose(1, 2)[:, :, queries if n == "q" else keys] for n in "qkv")
        return model(name).eager_attention_forward(module, q, k, v, mask, scaling=q.shape[-1] ** -0.5)[0]

    def step(x: Named, t: int, state: None) -> tuple[Tensor, None]:
        first = 0 if window is None else max(0, t + 1 - window)
        return call(x, None, slice(t, t + 1), slice(first, t + 1))[:, 0], None

    forms = lambda: masked(call, window) | {"steps": lambda x: by_token(x, step, None)}
    return record(ours, f"{name}.eager_attention_forward", forms, dtype)


def _functions() -> Iterator[PeerFunction]:
    """Yield all records."""
    gated, kda = subject("gated-delta"), subject("kda")
    negative = subject("gated-delta", GatedDelta(negative_eigenvalues=True))
    for form in ("chunk", "recurrent"):
        yield _delta(gated, "qwen3_next", f"torch_{form}_gated_delta_rule")
        yield _delta(negative, "olmo_hybrid", f"torch_{form}_gated_delta_rule", factor=2.0)
        yield _delta(kda, "kimi_linear", f"{form}_kimi_delta_attention")
    yield from _mamba2()
    yield from _mamba()
    yield from _xlstm()
    yield _eager(subject("softmax-sink"), "gpt_oss", "float64")
    yield _eager(subject("softmax"), "llama")
    yield _eager(subject("window", Local(16, 1)), "mistral", window=16)


FUNCTIONS = tuple(_functions())
