"""Attention modules of Hugging Face's transformers, with projections that only pick parts of their input.

What surrounds the mechanism in such a module, a norm or an output gate, is replaced by the identity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attnlab.bench.peer_parity.comparison import PeerFunction
from attnlab.bench.peer_parity.subjects import subject
from attnlab.bench.peer_parity.transformers import CHUNK, Named, Tensor, by_token, masked, model, record, torch
from attnlab.mechanisms.differential import Differential
from attnlab.mechanisms.lightning import Lightning

START = 0.8 - 0.6 * math.exp(-0.3)  # λ_init of the second layer


def _pick(rows: list[int], width: int) -> Tensor:
    """Return the weight of a linear layer that picks these channels of an input of this width."""
    return torch().eye(width)[rows]


def _differential() -> PeerFunction:
    """Return the record of DiffLlama, whose first heads attend with the first halves of our queries and keys."""
    ours = subject("differential", Differential(start_mix=START), H=1, V=8)

    def module(K: int) -> Tensor:
        from_config = {"hidden_size": 3 * K, "head_dim": K // 2, "num_attention_heads": 2, "num_key_value_heads": 2}
        file = model("diffllama")
        config = file.DiffLlamaConfig(**from_config, attention_dropout=0.0, attn_implementation="eager")
        made = file.DiffLlamaAttention(config, layer_idx=1)
        made.groupnorm = made.o_proj = torch().nn.Identity()
        return made

    def call(x: Named, mask: Tensor | None, keep_to: slice = slice(None), cache: Tensor | None = None) -> Tensor:
        K = x["q"].shape[-1]
        hidden = torch().cat([x[name][:, :, 0] for name in "qkv"], dim=-1)[:, keep_to]
        halves = {f"lambda_{n}{i + 1}": x[f"mix_{n}"][0, i * K // 2 : (i + 1) * K // 2] for n in "qk" for i in (0, 1)}
        picks = {f"{n}_proj.weight": _pick(list(range(i * K, (i + 1) * K)), 3 * K) for i, n in enumerate("qkv")}
        ones = torch().ones(1, hidden.shape[1], K // 2)
        inputs = {"hidden_states": hidden, "position_embeddings": (ones, 0 * ones), "attention_mask": mask}
        run = torch().func.functional_call
        y, _ = run(module(K), halves | picks, kwargs=inputs | {"cache": cache}, args=())
        return y[:, :, None] / (1 - START)

    def steps(x: Named) -> Tensor:
        step = lambda x, t, cache: (call(x, None, slice(t, t + 1), cache)[:, 0], cache)
        return by_token(x, step, model("diffllama").DynamicCache())

    return record(ours, "diffllama.DiffLlamaAttention", lambda: masked(call) | {"steps": steps})


def _lightning() -> PeerFunction:
    """Return the record of MiniMax, with our decays in place of its own."""
    ours = subject("lightning", Lightning(slopes="formula"), H=3, V=8)

    def call(x: Named, here: slice = slice(None), cache: Tensor | None = None) -> Tensor:
        _, _, H, K = x["q"].shape
        file, width = model("minimax"), 3 * H * K
        sizes = {"hidden_size": width, "num_attention_heads": H, "num_key_value_heads": H, "head_dim": K}
        kinds = {"hidden_act": "linear", "layer_types": ["linear_attention"], "num_hidden_layers": 1}
        module = file.MiniMaxLightningAttention(file.MiniMaxConfig(**sizes, **kinds, block_size=CHUNK), layer_idx=0)
        module.norm = module.out_proj = torch().nn.Identity()
        rate = x["rate"][:, None, None]
        decays = dict(zip(("query_decay", "key_decay", "diagonal_decay"), module.decay_factors(rate), strict=True))
        gate = torch().zeros(H * K, width)  # an output gate of one half everywhere
        weights = {"qkv_proj.weight": torch().eye(width), "output_gate.weight": gate, "slope_rate": rate}
        hidden = torch().cat([x[name] for name in "qkv"], dim=-1).flatten(2)[:, here]
        keep = x["keep"][:, here] if "keep" in x else None
        inputs = {"hidden_states": hidden, "position_embeddings": None, "attention_mask": keep, "cache": cache}
        y = torch().func.functional_call(module, weights | decays, args=(), kwargs=inputs)[0]
        return 2 * y.unflatten(2, (H, K))

    def steps(x: Named) -> Tensor:
        step = lambda x, t, cache: (call(x, slice(t, t + 1), cache)[:, 0], cache)
        return by_token(x, step, model("minimax").MiniMaxCache())

    forms = lambda: {"whole": call, "padded": call, "steps": steps}
    return record(ours, "minimax.MiniMaxLightningAttention", forms)


def _functions() -> Iterator[PeerFunction]:
    """Yield all records."""
    yield _differential()
    yield _lightning()


FUNCTIONS = tuple(_functions())
