"""Language models of Hugging Face's transformers, from tokens to logits: Llama 3.1, Qwen3, OLMo 2 and Gemma 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attnlab.bench.peer_parity.comparison import PeerFunction
from attnlab.bench.peer_parity.layers import LanguageSubject
from attnlab.bench.peer_parity.transformers import Named, Tensor, model
from attnlab.bench.peer_parity.transformers_layers import Loaded, record
from attnlab.mechanisms.softmax import Softmax
from attnlab.mechanisms.window import Local
from attnlab.models.language import Language
from attnlab.models.published import TransformerPlusPlus
from attnlab.modules.multi_head import MultiHead
from attnlab.modules.position import Rotary
from attnlab.ops.position import Llama3Scaling
from attnlab.pattern import Pattern

EPS = 1e-2  # large, so that a wrong ε or a norm at another place shows
SIZES = {"vocab_size": 11, "hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 2, "head_dim": 16}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
OPTIONS = {"rms_norm_eps": EPS, "tie_word_embeddings": True, "attn_implementation": "eager"}
TOKENS = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
PRE = {"input_layernorm": "around_attention.norm", "post_attention_layernorm": "around_feedforward.norm"}
"""Norms of the inputs of both blocks."""
OUTPUT = {
    "post_attention_layernorm": "around_attention.output_norm",
    "post_feedforward_layernorm": "around_feedforward.output_norm",
}
"""Norms of their outputs."""
SANDWICH = OUTPUT | {
    "input_layernorm": "around_attention.norm",
    "pre_feedforward_layernorm": "around_feedforward.norm",
}
"""Norms of both."""
QK = {"self_attn.q_norm": "attention.q_norm", "self_attn.k_norm": "attention.k_norm"}
MAPS = {f"self_attn.{name}_proj": f"attention.{name}" for name in "qkvo"}
MAPS |= {"mlp.gate_proj": "feedforward.inner", "mlp.up_proj": "feedforward.gate", "mlp.down_proj": "feedforward.outer"}


def model_weights(norms: dict[str, str], kinds: int = 1, less: float = 0.0) -> Callable[[Named], dict[str, Tensor]]:
    """Return a function from our parameters to theirs.

    Args:
        norms: Our name of each norm in a layer, by theirs.
        kinds: The number of layers in our period.
        less: What their weights of norms are less than ours.
    """

    def weights(x: Named) -> dict[str, Tensor]:
        found = {"model.embed_tokens.weight": x["target.table"], "model.norm.weight": x["decoded.scale"] - less}
        periods = len(next(x[name] for name in x if name.startswith("decoder.")))
        for n in range(periods * kinds):
            kind = "decoder." if kinds == 1 else f"decoder.layers.{n % kinds}."
            here = lambda name, kind=kind, n=n: x[kind + name][n // kinds]
            theirs = lambda name, n=n: f"model.layers.{n}.{name}.weight"
            found |= {theirs(name): here(f"{ours}.w").T for name, ours in MAPS.items()}
            found |= {theirs(name): here(f"{ours}.scale") - less for name, ours in norms.items()}
        return found

    return weights


def _call(module: Loaded, x: Tensor, keep: Tensor | None, places: Tensor, cache: Tensor | None) -> Tensor:
    """Call a model on tokens."""
    mask = None if keep is None else keep.long()
    inputs = {"input_ids": x.long(), "attention_mask": mask, "position_ids": places[None], "cache": cache}
    return module(**inputs, use_cache=cache is not None).logits


def _record(
    ours: str, config: Language, file: str, name: str, weights: Callable, sizes: Mapping[str, object]
) -> PeerFunction:
    """Return the record of a model."""

    def create() -> Tensor:
        options = SIZES | HEADS | OPTIONS | TOKENS | {"rope_parameters": ROPE} | dict(sizes)
        return getattr(model(file), f"{name}ForCausalLM")(getattr(model(file), f"{name}Config")(**options))

    return record(LanguageSubject(ours, config, T=40), f"{file}.{name}ForCausalLM", create, weights, _call)


def _llama() -> PeerFunction:
    """Return the record of Llama with the rotary frequencies of Llama 3.1, of a model made for short sequences."""
    scaling = Llama3Scaling(8.0, 16)
    config = TransformerPlusPlus(norm_eps=EPS, position=Rotary(base=500.0, pairs="halves", scaling=scaling))
    rope = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "original_max_position_embeddings": 16}
    rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    return _record("transformer++:llama 3.1", config, "llama", "Llama", model_weights(PRE), {"rope_parameters": rope})


def _qwen3() -> PeerFunction:
    """Return the record of Qwen3."""
    config = TransformerPlusPlus(norm_eps=EPS, attention=MultiHead(qk_norm="head"))
    return _record("transformer++:qwen3", config, "qwen3", "Qwen3", model_weights(PRE | QK), {})


def _olmo2() -> PeerFunction:
    """Return the record of OLMo 2."""
    attention = MultiHead(qk_norm="all")
    config = TransformerPlusPlus(norm_eps=EPS, attention=attention, norm_first=False, norm_output=True)
    return _record("transformer++:olmo 2", config, "olmo2", "Olmo2", model_weights(OUTPUT | QK), {})


def _gemma2() -> PeerFunction:
    """Return the record of Gemma 2, whose norms multiply by 1 + weight.

    Ours has no cap of output logits, and the GELU of its feed-forward blocks is the exact one.
    """
    config = TransformerPlusPlus(
        mechanism=Pattern((Local(16, 1, softcap=5.0), Softmax(softcap=5.0))),
        norm_eps=EPS,
        norm_output=True,
        activation="geglu",
        scale_embeddings=True,
    )
    sizes = {"query_pre_attn_scalar": 16, "attn_logit_softcapping": 5.0, "final_logit_softcapping": None}
    sizes |= {"hidden_activation": "gelu", "sliding_window": 16}
    weights = model_weights(SANDWICH, kinds=2, less=1.0)
    return _record("transformer++:gemma 2", config, "gemma2", "Gemma2", weights, sizes)


def _functions() -> Iterator[PeerFunction]:
    """Yield all records."""
    yield _llama()
    yield _qwen3()
    yield _olmo2()
    yield _gemma2()


FUNCTIONS = tuple(_functions())
