import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.analysis.maps import attention_maps
from attnlab.decoding import greedy
from attnlab.mechanisms import MECHANISMS, Linear, Softmax
from attnlab.mechanisms.recurrent import Recurrent
from attnlab.models import MODELS, Language
from attnlab.modules.embed import Embed
from attnlab.modules.position import Floater, Learned, Learned2D, Rotary2D, Sinusoidal, Sinusoidal2D
from attnlab.tasks.base.shapes import Tokens

from .kinds import one_of_each
from .training import filled, overfitted

SHAPE = Tokens(17, 8)
TOKENS = jnp.array([9, 4, 5, 6, 0])
SMALL = {"width": 8, "heads": 2}


def made(**fields):
    return filled(Language(**(SMALL | fields)), SHAPE)


def test_the_data_of_another_model_are_refused():
    for name in ("transformer", "seq2seq", "associative-memory"):
        with pytest.raises(
            ValueError, match=r"^model=.* needs data with .*, but this task's data have vocabulary, length"
        ):
            MODELS[name].create(jax.random.key(0), SHAPE)


scores = jax.jit(lambda model, tokens: model(tokens, tokens != 0))


def forms_of(mechanism):
    """Returns what a causal network trains and stores for a mechanism."""
    return bool(mechanism.tokens), bool(mechanism.learned), isinstance(mechanism, Recurrent)


def test_it_is_registered():
    assert MODELS["language"] == Language()


@jax.jit
def forms(model):
    """Returns the parallel form with two contents of the padding, and decoding token by token."""
    whole = jax.vmap(lambda tokens: model(tokens, TOKENS != 0))(jnp.stack([TOKENS, TOKENS.at[4].set(7)]))
    step = lambda state, token: model.step(state, token)[::-1]
    return whole, jax.lax.scan(step, model.start(len(TOKENS)), TOKENS)[1]


# The tests of positions cover rotations and biases.
@pytest.mark.parametrize(
    "position",
    [Sinusoidal(), Sinusoidal2D(columns=2), Learned2D(columns=2), Floater(place="input"), Rotary2D(columns=2)],
    ids=str,
)
def test_token_by_token_equals_the_whole_and_padding_changes_nothing(position):
    whole, steps = forms(made(position=position, key_heads=1 if position.rotary else 2))
    assert whole.shape == (2, 5, 17)
    np.testing.assert_allclose(steps[:4], whole[0, :4], atol=1e-5)
    np.testing.assert_allclose(whole[1, :4], whole[0, :4], atol=1e-5)


def test_attention_alone_decodes_as_it_scores():
    whole, steps = forms(made(feedforward=0))
    np.testing.assert_allclose(steps[:4], whole[0, :4], atol=1e-5)


def test_no_token_reaches_an_earlier_score():
    model = made(mechanism=Linear())
    one, other = scores(model, TOKENS), scores(model, TOKENS.at[3].set(8))
    np.testing.assert_array_equal(other[:3], one[:3])
    assert np.abs(other[3] - one[3]).max() > 1e-3


@pytest.mark.parametrize("name", one_of_each(lambda mechanism: mechanism.traits.decodes, alike=forms_of))
def test_two_layers_overfit_eight_sequences_and_greedy_decoding_is_the_argmax_of_the_parallel_form(name):
    config = Language(width=16, heads=2, mechanism=MECHANISMS[name].with_length(8))
    model = jax.jit(lambda: config.create(jax.random.key(0), SHAPE))()
    answers = jnp.concatenate([jax.random.randint(jax.random.key(2), (8, 4), 3, 9), jnp.full((8, 1), 2)], axis=1)
    given = jnp.concatenate([jnp.arange(9, 17)[:, None], answers[:, :-1]], axis=1)
    ones = jnp.ones(5, bool)
    model = overfitted(model, lambda model: jax.vmap(lambda tokens: model(tokens, ones))(given), answers)
    decode = jax.jit(jax.vmap(lambda begin: greedy(model.step, model.start(5), begin, 2, 5)))
    np.testing.assert_array_equal(decode(given[:, 0]), answers)


def test_its_maps_are_those_of_each_layer_and_head():
    config = Language(**SMALL, layers=3, key_heads=1)
    seen = attention_maps(filled(config, SHAPE), TOKENS, TOKENS != 0)
    assert {name: map_.shape for name, map_ in seen.items()} == {"decoder": (3, 2, 5, 5)}


def test_embeddings_can_be_tied_and_dropout_needs_a_key():
    tied, free = made(tied=True, dropout=0.5), made(dropout=0.5)
    assert len(jax.tree.leaves(free)) == len(jax.tree.leaves(tied)) + 2
    run = jax.jit(lambda key: tied(TOKENS, TOKENS != 0, key))
    assert np.abs(run(jax.random.key(1)) - run(jax.random.key(2))).max() > 0.01
    np.testing.assert_array_equal(run(None), run(None))


def test_a_sequence_beyond_a_learned_table_is_refused():
    line = r"model.position=Learned\(length=7, std=None\) supports 7 positions, but a sequence has 8"
    with pytest.raises(ValueError, match=line):
        Language(**SMALL, position=Learned(7)).create(jax.random.key(0), SHAPE)
    with pytest.raises(ValueError, match=r"supports 8 positions, but a sequence has 9"):
        made(position=Learned(8)).start(9)


def test_invalid_fields_are_refused_at_creation():
    whole = next(each for each in MECHANISMS.values() if not each.traits.decodes)
    with pytest.raises(ValueError, match=r"model.mechanism=.* has no causal form and cannot decode"):
        Language(mechanism=whole)
    assert Language(mechanism=Softmax(), position=Floater()).attentions == {"decoder": Softmax()}


def gpt2(weights, tokens, eps):
    """Computes the logits of GPT-2 (Radford et al. 2019) in NumPy: all heads at once, and one product for q, k, v."""
    norm = lambda x, scale, shift: (
        (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * scale + shift
    )
    x = weights["wte"][tokens] + weights["wpe"][: len(tokens)]
    (T, D), H = x.shape, 2
    for block in weights["blocks"]:
        qkv = norm(x, *block["ln_1"]) @ block["c_attn_w"] + block["c_attn_b"]
        q, k, v = (each.reshape(T, H, D // H).transpose(1, 0, 2) for each in np.split(qkv, 3, axis=1))
        logits = q @ k.transpose(0, 2, 1) / np.sqrt(D // H)
        share = np.exp(np.where(np.tril(np.ones((T, T), bool)), logits, -np.inf))
        y = share / share.sum(-1, keepdims=True) @ v
        x = x + y.transpose(1, 0, 2).reshape(T, D) @ block["c_proj_w"] + block["c_proj_b"]
        h = norm(x, *block["ln_2"]) @ block["fc_w"] + block["fc_b"]
        h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        x = x + h @ block["out_w"] + block["out_b"]
    return norm(x, *weights["ln_f"]) @ weights["wte"].T


def in_gpt2s_order(model):
    """Returns the weights of a network by GPT-2's names."""
    array = lambda leaf: np.asarray(leaf[...], np.float64)
    norm = lambda norm, n: (array(norm.scale)[n], array(norm.shift)[n])
    layers, blocks = model.decoder, []
    for n in range(2):
        attention, feedforward = layers.attention, layers.feedforward
        maps = attention.q, attention.k, attention.v
        blocks.append({
            "ln_1": norm(layers.around_attention.norm, n), "ln_2": norm(layers.around_feedforward.norm, n),
            "c_attn_w": np.concatenate([array(each.w)[n] for each in maps], axis=1),
            "c_attn_b": np.concatenate([array(each.b)[n] for each in maps]),
            "c_proj_w": array(attention.o.w)[n], "c_proj_b": array(attention.o.b)[n],
            "fc_w": array(feedforward.inner.w)[n], "fc_b": array(feedforward.inner.b)[n],
            "out_w": array(feedforward.outer.w)[n], "out_b": array(feedforward.outer.b)[n],
        })  # fmt: skip
    last = array(model.decoded.scale), array(model.decoded.shift)
    wpe = array(model.target_position.vectors)
    return {"wte": array(model.target.table), "wpe": wpe, "blocks": blocks, "ln_f": last}


GPT2 = Language(
    width=8, heads=2, activation="gelu_tanh", position=Learned(8, std=0.02), initialiser="gaussian", tied=True,
    scale_embeddings=False, dtype="float64",
)  # fmt: skip


@pytest.mark.usefixtures("x64")
def test_gpt2_is_a_configuration_of_it():
    """Checks that the logits equal those of a separate implementation, but not with another ε or scaled embeddings."""
    tokens = np.array([9, 4, 5, 6, 1, 12, 16, 3])
    away = lambda key, x: x + 0.02 * jax.random.normal(key, x.shape, x.dtype)

    @jax.jit
    def created():
        leaves, kind = jax.tree.flatten(GPT2.create(jax.random.key(0), SHAPE))
        return jax.tree.unflatten(kind, map(away, jax.random.split(jax.random.key(1), len(leaves)), leaves))

    model = created()
    ours, theirs = jax.jit(lambda model: model(jnp.asarray(tokens)))(model), in_gpt2s_order(model)
    np.testing.assert_allclose(ours, gpt2(theirs, tokens, 1e-5), rtol=1e-9, atol=1e-12)
    size = np.abs(ours).max()
    assert np.abs(ours - gpt2(theirs, tokens, 1e-6)).max() > 1e-3 * size
    assert np.abs(ours - gpt2(theirs | {"wpe": theirs["wpe"] / 8**0.5}, tokens, 1e-5)).max() > 1e-2 * size


def test_embeddings_start_as_published():
    """Vaswani et al.: standard deviation 1/√D, times √D when read. GPT-2 and BERT: 0.02, read unscaled."""
    ids = jnp.arange(4000)
    for scaled, spread, read in ((True, 16**-0.5, 1.0), (False, 0.02, 0.02)):
        embed = Embed(jax.random.key(0), 4000, 16, scaled)
        np.testing.assert_allclose(np.std(embed.table[...]), spread, rtol=0.02)
        np.testing.assert_allclose(np.std(embed(ids, jnp.float32)), read, rtol=0.02)
    table = Learned(4000, std=0.02).create(jax.random.key(0), 16, 2)
    np.testing.assert_allclose(np.std(table.vectors[...]), 0.02, rtol=0.02)
