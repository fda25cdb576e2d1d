"""Linear attention layers of Hugging Face's transformers: Qwen3-Next, Kimi Linear and Mamba-2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from attnlab.bench.peer_parity.comparison import PeerFunction
from attnlab.bench.peer_parity.layers import LayerSubject
from attnlab.bench.peer_parity.transformers import Named, Tensor, model
from attnlab.bench.peer_parity.transformers_layers import by_head, convolution, linear, record, turned_round
from attnlab.mechanisms.gated_delta import GatedDelta
from attnlab.models.published import PUBLISHED

EPS = 1e-2  # large, so that a wrong ε or a norm at another place shows
SLOW = {"learned.rate": -2.0}
"""Gates that shut at once lose digits in the chunked forms, which the extreme gates of the mechanisms show."""


def layer_of(name: str, part: str, layer: int = 0, **fields: object) -> LayerSubject:
    """Return the attention of a layer of a published model, with other fields.

    Args:
        name: The name of the model in `PUBLISHED`.
        part: The name of the layer in the tables.
        layer: The number of the layer. Default: 0, the first.
        **fields: Fields of the config to replace, by name. `norm_eps` is `EPS` by default.
    """
    config = replace(PUBLISHED[name], **{"norm_eps": EPS} | fields)
    return LayerSubject(f"{name}:{part}", config, layer=layer, offsets=SLOW)


def _call(module: Tensor, x: Tensor, keep: Tensor | None, places: Tensor, cache: Tensor | None) -> Tensor:
    """Call a layer that takes a mask of padding."""
    return module(x, attention_mask=keep, cache=cache)


def _qwen3_next() -> PeerFunction:
    """Return the record of the gated delta layer, whose projections are ordered by key head."""
    ours = layer_of("qwen3-next", "linear layer")

    def create() -> Tensor:
        sizes = {"hidden_size": 64, "linear_num_key_heads": 4, "linear_num_value_heads": 8, "num_hidden_layers": 1}
        sizes |= {"linear_key_head_dim": 16, "linear_value_head_dim": 16, "rms_norm_eps": EPS}
        file = model("qwen3_next")
        config = file.Qwen3NextConfig(**sizes, layer_types=["linear_attention"])
        module = file.Qwen3NextGatedDeltaNet(config, 0)
        module.config = config
        return module

    def weights(x: Named) -> dict[str, Tensor]:
        return {
            "in_proj_qkvz.weight": by_head(x, 4, "q", "k", "v", "gate"),
            "in_proj_ba.weight": by_head(x, 4, "tokens.beta", "tokens.dt"),
            "conv1d.weight": convolution(x),
            "A_log": x["learned.rate"],
            "dt_bias": x["learned.shift"],
            "norm.weight": x["head_norm.scale"],
            "out_proj.weight": linear(x, "o"),
        }

    return record(ours, "qwen3_next.Qwen3NextGatedDeltaNet", create, weights, _call)


def _kimi() -> PeerFunction:
    """Return the record of the layer of Kimi delta attention."""
    ours = layer_of("kimi-linear", "linear layer")

    def create() -> Tensor:
        sizes = {"hidden_size": 64, "linear_num_heads": 4, "linear_head_dim": 16, "num_hidden_layers": 1}
        file = model("kimi_linear")
        config = file.KimiLinearConfig(**sizes, rms_norm_eps=EPS, layer_types=["linear_attention"])
        module = file.KimiLinearDeltaAttention(config, 0)
        module.config = config
        return module

    def weights(x: Named) -> dict[str, Tensor]:
        maps = {f"{name}_proj": name for name in "qkvo"} | {"b_proj": "tokens.beta"}
        maps |= {"forget_gate.f_a_proj": "down.dt", "forget_gate.f_b_proj": "tokens.dt"}
        maps |= {"g_a_proj": "down.output gate", "g_b_proj": "gate"}
        return {f"{theirs}.weight": linear(x, ours) for theirs, ours in maps.items()} | {
            "conv1d.weight": convolution(x),
            "forget_gate.A_log": x["learned.rate"].view(1, 1, -1, 1),
            "forget_gate.dt_bias": x["learned.shift"].flatten(),
            "o_norm.weight": x["head_norm.scale"],
        }

    return record(ours, "kimi_linear.KimiLinearDeltaAttention", create, weights, _call)


def _mamba2() -> PeerFunction:
    """Return the record of the mixer, in which values come before keys, and keys before queries."""
    ours = layer_of("mamba-2", "layer")

    def create() -> Tensor:
        sizes = {"hidden_size": 64, "num_heads": 8, "head_dim": 16, "state_size": 16, "n_groups": 1, "chunk_size": 16}
        file = model("mamba2")
        config = file.Mamba2Config(**sizes, num_hidden_layers=1, layer_norm_epsilon=EPS)
        module = file.Mamba2Mixer(config, 0)
        module.config = config
        return module

    def weights(x: Named) -> dict[str, Tensor]:
        sizes = [16, 16, 128]
        return {
            "in_proj.weight": linear(x, "gate", "v", "k", "q", "tokens.dt"),
            "conv1d.weight": convolution(x, sizes),
            "conv1d.bias": turned_round(x["convolution.b"], sizes),
            "A_log": x["learned.rate"],
            "dt_bias": x["learned.shift"],
            "D": x["skip"],
            "norm.weight": x["head_norm.scale"],
            "out_proj.weight": linear(x, "o"),
        }

    return record(ours, "mamba2.Mamba2Mixer", create, weights, _call)


def _olmo_hybrid() -> PeerFunction:
    """Return the record of its gated delta layer, whose β reach 2, and whose norm has an ε of 1e-5 in any case."""
    rule = GatedDelta(negative_eigenvalues=True)
    ours = layer_of("gated-deltanet", "layer", mechanism=rule, norm_eps=1e-5)

    def create() -> Tensor:
        sizes = {"hidden_size": 64, "num_attention_heads": 4, "linear_num_key_heads": 4, "linear_num_value_heads": 4}
        sizes |= {"linear_key_head_dim": 16, "linear_value_head_dim": 32, "num_hidden_layers": 2}
        file = model("olmo_hybrid")
        config = file.OlmoHybridConfig(
            **sizes, linear_allow_neg_eigval=True, layer_types=["linear_attention", "full_attention"]
        )
        module = file.OlmoHybridGatedDeltaNet(config, 0)
        module.config = config
        return module

    def weights(x: Named) -> dict[str, Tensor]:
        maps = {f"{name}_proj": name for name in "qkvo"}
        maps |= {"a_proj": "tokens.dt", "b_proj": "tokens.beta", "g_proj": "gate"}
        return {f"{theirs}.weight": linear(x, ours) for theirs, ours in maps.items()} | {
            "conv1d.weight": convolution(x),
            "A_log": x["learned.rate"],
            "dt_bias": x["learned.shift"],
            "o_norm.weight": x["head_norm.scale"],
        }

    return record(ours, "olmo_hybrid.OlmoHybridGatedDeltaNet", create, weights, _call)


def _functions() -> Iterator[PeerFunction]:
    """Yield all records."""
    yield _qwen3_next()
    yield _mamba2()
    yield _kimi()
    yield _olmo_hybrid()


FUNCTIONS = tuple(_functions())
