"""Softmax attention layers of Hugging Face's transformers with their rotary positions, gates, norms, and low ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module

from attnlab.bench.peer_parity.comparison import PeerFunction
from attnlab.bench.peer_parity.layers import LayerSubject
from attnlab.bench.peer_parity.transformers import Named, Tensor, model
from attnlab.bench.peer_parity.transformers_layers import Call, by_head, linear, record
from attnlab.mechanisms.differential import Differential
from attnlab.mechanisms.window import Local
from attnlab.models.published import LLAMA_ROTARY, PUBLISHED, TransformerPlusPlus
from attnlab.modules.latent import Latent
from attnlab.modules.multi_head import MultiHead
from attnlab.modules.position import Rotary
from attnlab.ops.position import YarnScaling

EPS = 1e-2  # large, so that a wrong ε or a norm at another place shows
SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1, "attn_implementation": "eager"}
WINDOW = 16


def _attention(file: str, name: str, sizes: Mapping[str, object], layer: int = 0) -> Callable[[], Tensor]:
    """Return a function that creates an attention of a model."""

    def create() -> Tensor:
        config = getattr(model(file), f"{name}Config")(**SIZES | dict(sizes))
        return getattr(model(file), f"{name}Attention")(config, layer)

    return create


def _call(file: str, rotary: str | None = None, window: bool = False) -> Call:
    """Return a function that calls an attention with its mask and the rotations of its positions."""

    def call(module: Tensor, x: Tensor, keep: Tensor | None, places: Tensor, cache: Tensor | None) -> Tensor:
        masks = import_module("transformers.masking_utils")
        make = masks.create_sliding_window_causal_mask if window else masks.create_causal_mask
        # One query sees all keys that its cache holds.
        mask = None if cache is not None else make(module.config, x, keep, None, position_ids=places[None])
        rotate = None if rotary is None else getattr(model(file), rotary)(module.config)
        turned = {} if rotate is None else {"position_embeddings": rotate(x, places[None])}
        return module(x, attention_mask=mask, cache=cache, **turned)[0]

    return call


def _maps(x: Named, *names: str) -> dict[str, Tensor]:
    """Return the weights of linear maps that are called as ours."""
    return {f"{name}_proj.weight": linear(x, name) for name in names}


def _qwen3_next() -> PeerFunction:
    """Return the record of the gated layer. Its norms multiply by 1 + weight, and its gates follow each query."""
    config = replace(PUBLISHED["qwen3-next"], norm_eps=EPS)
    ours = LayerSubject("qwen3-next:softmax layer", config, layer=3)
    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}
    sizes = {"num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": EPS, "rope_parameters": rope}

    def weights(x: Named) -> dict[str, Tensor]:
        norms = {f"{name}_norm.weight": x[f"{name}_norm.scale"] - 1 for name in "qk"}
        return {"q_proj.weight": by_head(x, 4, "q", "gate")} | _maps(x, "k", "v", "o") | norms

    create = _attention("qwen3_next", "Qwen3Next", sizes | {"layer_types": ["full_attention"]})
    return record(
        ours, "qwen3_next.Qwen3NextAttention", create, weights, _call("qwen3_next", "Qwen3NextRotaryEmbedding")
    )


def _latent(x: Named) -> dict[str, Tensor]:
    """Return the weights of multi-head latent attention after the queries."""
    return {
        "kv_a_proj_with_mqa.weight": linear(x, "latent", "shared"),
        "kv_a_layernorm.weight": x["latent_norm.scale"],
        "kv_b_proj.weight": by_head(x, 4, "k", "v"),
        "o_proj.weight": linear(x, "o"),
    }


LATENT = {"num_key_value_heads": 4, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16}


def _kimi() -> PeerFunction:
    """Return the record of latent attention without positions, whose norm has an ε of 1e-6 in any configuration."""
    ours = LayerSubject("kimi-linear:latent layer", replace(PUBLISHED["kimi-linear"], norm_eps=1e-6), layer=3)
    create = _attention("kimi_linear", "KimiLinear", LATENT | {"layer_types": ["full_attention"]})
    weights = lambda x: _maps(x, "q") | _latent(x)
    return record(ours, "kimi_linear.KimiLinearAttention", create, weights, _call("kimi_linear"))


def _deepseek(interleaved: bool) -> PeerFunction:
    """Return the record of latent attention with rotary positions, and with queries of low rank."""
    config = TransformerPlusPlus(
        key_heads=None,
        norm_eps=1e-6,
        attention=Latent(rank=32, query_rank=48, rotary_width=8),
        position=Rotary(pairs="interleaved" if interleaved else "halves"),
    )
    ours = LayerSubject("deepseek-v3:layer", config)

    def weights(x: Named) -> dict[str, Tensor]:
        queries = {"q_a_proj.weight": linear(x, "q_down"), "q_a_layernorm.weight": x["q_down_norm.scale"]}
        return queries | {"q_b_proj.weight": linear(x, "q")} | _latent(x)

    rope = {"rope_type": "default", "rope_theta": 10000.0}
    sizes = LATENT | {"q_lora_rank": 48, "rope_interleave": interleaved, "rope_parameters": rope}
    name = f"deepseek_v3.DeepseekV3Attention({interleaved=})"
    create = _attention("deepseek_v3", "DeepseekV3", sizes)
    return record(ours, name, create, weights, _call("deepseek_v3", "DeepseekV3RotaryEmbedding"))


def _gpt_oss() -> PeerFunction:
    """Return the record of a windowed layer with sinks, biases, grouped queries, and the frequencies of YaRN.

    Ours has one sink for each key head, theirs one for each query head.
    """
    config = TransformerPlusPlus(
        mechanism=Local(WINDOW, 1, sink="learned"),
        position=Rotary(base=150000.0, pairs="halves", scaling=YarnScaling(32.0, 4096)),
        biases=True,
    )
    rope = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "original_max_position_embeddings": 4096}
    rope |= {"beta_fast": 32.0, "beta_slow": 1.0}
    sizes = {"num_key_value_heads": 2, "head_dim": 16, "sliding_window": WINDOW, "rope_parameters": rope}
    create = _attention("gpt_oss", "GptOss", sizes | {"layer_types": ["sliding_attention"]})

    def weights(x: Named) -> dict[str, Tensor]:
        sinks = {"sinks": x["learned.sink"].repeat_interleave(2)}
        return _maps(x, *"qkvo") | {f"{name}_proj.bias": x[f"{name}.b"] for name in "qkvo"} | sinks

    call = _call("gpt_oss", "GptOssRotaryEmbedding", window=True)
    return record(LayerSubject("gpt-oss:window layer", config), "gpt_oss.GptOssAttention", create, weights, call)


def _diffllama() -> PeerFunction:
    """Return the record of differential attention with its norm, whose scale here is part of the output map.

    All heads share their λ, so that ours has one head.
    """
    start = 0.2
    config = TransformerPlusPlus(
        width=16,
        heads=1,
        key_heads=None,
        mechanism=Differential(start_mix=start),
        attention=MultiHead(head_norm="rms"),
        position=LLAMA_ROTARY,
        norm_eps=EPS,
    )
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": EPS}

    def weights(x: Named) -> dict[str, Tensor]:
        q, k = x["learned.mix_q"][0], x["learned.mix_k"][0]
        mixes = {"lambda_q1": q[:8], "lambda_q2": q[8:], "lambda_k1": k[:8], "lambda_k2": k[8:]}
        output = {"o_proj.weight": linear(x, "o") * x["head_norm.scale"] / (1 - start)}
        return _maps(x, *"qkv") | mixes | output

    create = _attention("diffllama", "DiffLlama", sizes | {"attention_dropout": 0.0})
    call = _call("diffllama", "DiffLlamaRotaryEmbedding")
    return record(LayerSubject("differential:layer", config), "diffllama.DiffLlamaAttention", create, weights, call)


def _functions() -> Iterator[PeerFunction]:
    """Yield all records."""
    yield _qwen3_next()
    yield _kimi()
    yield _deepseek(interleaved=True)
    yield _deepseek(interleaved=False)
    yield _gpt_oss()
    yield _diffllama()


FUNCTIONS = tuple(_functions())
