"""A training step of a language model, compared with the same network in flax and in jax-linear-attention.

Claim: at least 1.2 times faster than either, at all sizes.

Command: python benchmarks/language_jax.py [--save]
jax-linear-attention needs Python 3.12 and jax 0.11.2. If it is not installed, flax is measured alone.

Each network has 4 layers and 4 heads, embeddings shared with the output, linear maps without biases and no dropout. The
network compared with flax is nanoGPT's: LayerNorm, GELU, learned positions, as a stack of `nnx.MultiHeadAttention` with
jax's own `jax.nn.dot_product_attention`. The network compared with jax-linear-attention is Llama's: RMSNorm, SwiGLU,
rotary positions, as its `LanguageModel` with its own training step, without rematerialisation. Both have as many
parameters as ours; otherwise the script stops. One step is the loss, the gradients, their norm clipped at 1, and AdamW;
float32. Ours is the step that `attnlab run` makes, 8 steps per dispatch; theirs is one compiled step with donated
buffers. `--repeat` turns of 8 steps each alternate.

Expected: kept. On two quiet cores of an Intel Xeon cloud machine, jax 0.11.2, flax 0.12.12, jax-linear-attention 0.1.0,
in ms per step (quartiles), and how many times as long theirs takes:

| size | network | ours | theirs | times |
|---|---|---|---|---|
| tiny | flax | 16.6 (16.2 to 16.9) | 22.5 (22.4 to 23.3) | 1.38 (1.32 to 1.40) |
| small | flax | 39.0 (38.0 to 39.2) | 66.1 (65.0 to 66.9) | 1.71 (1.69 to 1.76) |
| wide | flax | 286.7 (280.9 to 294.1) | 491.8 (474.4 to 500.8) | 1.73 (1.70 to 1.75) |
| long | flax | 159.8 (159.2 to 160.1) | 317.3 (316.4 to 323.7) | 1.99 (1.97 to 2.02) |
| words | flax | 614.5 (609.7 to 622.2) | 774.1 (764.3 to 782.4) | 1.25 (1.23 to 1.26) |
| tiny | jax-linear-attention | 15.7 (15.1 to 15.7) | 23.4 (23.2 to 23.8) | 1.50 (1.48 to 1.55) |
| small | jax-linear-attention | 38.0 (37.1 to 38.1) | 72.5 (71.5 to 73.4) | 1.92 (1.91 to 1.93) |
| wide | jax-linear-attention | 290.0 (283.3 to 292.8) | 496.7 (482.4 to 509.0) | 1.72 (1.70 to 1.73) |
| long | jax-linear-attention | 148.6 (148.1 to 150.0) | 342.5 (337.6 to 345.7) | 2.28 (2.28 to 2.32) |
| words | jax-linear-attention | 594.0 (584.5 to 597.6) | 807.5 (802.3 to 813.6) | 1.36 (1.36 to 1.38) |

The losses that the script prints differ, because each network draws its own initial values.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from shared.language_steps import BETAS, CLIP, DECAY, RATE, SIZES, Size, language_steps, random_symbols

from attnlab.analysis.cost import parameters
from attnlab.analysis.measure import Program, quartiles, timed, times_faster
from attnlab.bench.script import claim, finish, options, say, share
from attnlab.models import Language
from attnlab.modules.position import Learned, Rotary
from attnlab.tasks.base.shapes import Tokens
from attnlab.training.trainer import DISPATCH


def nanogpt(size: Size) -> Language:
    """Our network for the comparison with flax."""
    return Language(
        width=size.width, heads=size.heads, layers=size.layers, feedforward=4 * size.width, activation="gelu",
        position=Learned(length=size.length), tied=True, biases=False,
    )  # fmt: skip


def llama(size: Size) -> Language:
    """Our network for the comparison with jax-linear-attention."""
    return Language(
        width=size.width, heads=size.heads, layers=size.layers, feedforward=8 * size.width // 3, activation="swiglu",
        norm="rms", position=Rotary(), tied=True, biases=False, scale_embeddings=False,
    )  # fmt: skip


def matrices(tree: Any) -> Any:
    """Where weight decay applies: at arrays of two or more axes."""
    return jax.tree.map(lambda x: x.ndim > 1, tree)


def optimiser(mask: Any = matrices) -> optax.GradientTransformation:
    """The optimiser of both peers."""
    return optax.chain(optax.clip_by_global_norm(CLIP), optax.adamw(RATE, *BETAS, weight_decay=DECAY, mask=mask))


def alike(peer: str, theirs: Any, config: Language, size: Size) -> None:
    """Check that a peer has as many parameters as ours.

    Raises:
        ValueError: If it has not.
    """
    own = jax.eval_shape(lambda: config.create(jax.random.key(0), Tokens(size.symbols, size.length)))
    if parameters(own) != parameters(theirs):
        raise ValueError(f"{peer} has {parameters(theirs)} parameters, ours {parameters(own)}")


class Block(nnx.Module):
    """A layer of nanoGPT in flax."""

    def __init__(self, size: Size, rngs: nnx.Rngs):
        width = size.width
        self.before, self.between = (nnx.LayerNorm(width, rngs=rngs) for _ in range(2))
        self.attention = nnx.MultiHeadAttention(
            size.heads, width, use_bias=False, decode=False, attention_fn=fused, rngs=rngs
        )  # fmt: skip
        self.wide = nnx.Linear(width, 4 * width, use_bias=False, rngs=rngs)
        self.narrow = nnx.Linear(4 * width, width, use_bias=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Vectors [B T D] after the layer."""
        x = x + self.attention(self.before(x))
        return x + self.narrow(nnx.gelu(self.wide(self.between(x))))


def fused(query: jax.Array, key: jax.Array, value: jax.Array, **ignored: object) -> jax.Array:
    """jax's own causal attention, which flax calls with further options."""
    return jax.nn.dot_product_attention(query, key, value, is_causal=True)


class Network(nnx.Module):
    """nanoGPT in flax."""

    def __init__(self, size: Size, rngs: nnx.Rngs):
        init = nnx.initializers.normal(0.02)
        self.embedding = nnx.Embed(size.symbols, size.width, embedding_init=init, rngs=rngs)
        self.places = nnx.Embed(size.length, size.width, embedding_init=init, rngs=rngs)
        self.blocks = nnx.List([Block(size, rngs) for _ in range(size.layers)])
        self.last = nnx.LayerNorm(size.width, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Scores [B T symbols] of the symbol after each token."""
        x = self.embedding(tokens) + self.places(jnp.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.embedding.attend(self.last(x))


def flaxs(size: Size, config: Language) -> Program:
    """Eight steps of flax, as its documentation writes them."""
    graph, model = nnx.split(Network(size, nnx.Rngs(0)))
    alike("flax", model, config, size)
    adam = optimiser()

    def loss(model: Any, tokens: jax.Array) -> jax.Array:
        scores = nnx.merge(graph, model)(tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(scores, tokens[:, 1:]).mean()

    def step(model: Any, memory: Any, tokens: jax.Array) -> Any:
        value, gradient = jax.value_and_grad(loss)(model, tokens)
        change, memory = adam.update(gradient, memory, model)
        return optax.apply_updates(model, change), memory, value

    compiled, drawn = jax.jit(step, donate_argnums=(0, 1)), random_symbols(size)
    held: list[Any] = [model, adam.init(model)]

    def run():
        for n in range(DISPATCH):
            *held[:], value = compiled(*held, drawn[n])
        return jax.block_until_ready(value)

    run()
    return Program(run, run)


def jlas(size: Size, config: Language) -> Program:
    """Eight steps of jax-linear-attention's `LanguageModel`, by its own training step."""
    made, models, training, eqx = map(
        import_module, ("jla.models.config", "jla.models.lm", "jla.training.step", "equinox")
    )
    heads, width = size.heads, size.width // size.heads
    attention = made.AttentionConfig(num_heads=heads, num_kv_heads=heads, head_dim=width, qk_norm=False)
    model = models.LanguageModel(
        made.ModelConfig(
            size.symbols, size.width, size.layers, 8 * size.width // 3, attention,
            compute_dtype="float32", remat="none",
        ),
        key=jax.random.key(0),
    )  # fmt: skip
    learned = eqx.filter(model, eqx.is_inexact_array)
    alike("jax-linear-attention", learned, config, size)
    adam = optimiser()
    loss = training.lm_loss(training.LossConfig(compute_dtype="float32"))
    step, drawn = training.build_train_step(adam, loss), random_symbols(size)
    held: list[Any] = [model, adam.init(learned), jax.random.key(0)]

    def run():
        for n in range(DISPATCH):
            batch = {"input_ids": drawn[n, None, :, :-1], "labels": drawn[n, None, :, 1:]}
            held[0], held[1], metrics, held[2] = step(held[0], held[1], batch, held[2])
        return jax.block_until_ready(metrics["loss"])

    run()
    return Program(run, run)


PEERS = {"flax": (nanogpt, flaxs), "jax-linear-attention": (llama, jlas)}


def main() -> None:
    """Measure, print the results and check the claim."""
    known = [peer for peer in PEERS if peer == "flax" or find_spec("jla")]
    chosen = options(__doc__, [], 9, sizes=list(SIZES))
    results: dict[str, Any] = {}
    claims = []
    with jax.numpy_rank_promotion("allow"):
        for name in chosen.sizes:
            size = SIZES[name]
            results[name] = {"size": vars(size)}
            for peer in known:
                config, theirs = PEERS[peer]
                programs = {"ours": language_steps(config(size), size), peer: theirs(size, config(size))}
                seconds = timed(programs, chosen.repeat)
                for each, values in seconds.items():
                    found = quartiles(values)
                    low, middle, high = (1000 * x / DISPATCH for x in (found.low, found.median, found.high))
                    say(f"{name}, {peer}, {each}: {middle:.1f} ms per step ({low:.1f} to {high:.1f})")
                losses = ", ".join(f"{each} {float(np.mean(x.answer())):.2f}" for each, x in programs.items())
                say(f"{name}, {peer}: loss after the same steps: {losses}")
                ratio = times_faster(seconds["ours"], seconds[peer])
                reached = share(programs["ours"], seconds["ours"])
                claims.append(claim(f"{name}, time of {peer} / time of ours", [ratio], least=1.2, shares=[reached]))
                results[name][peer] = {"seconds": seconds, "ratio": vars(ratio)}
    finish(__file__, chosen.save, claims, measured=results)


if __name__ == "__main__":
    main()
