# %% [markdown]
# # Attention by hand
#
# This notebook computes attention over three tokens, with numbers that fit on paper and every step from the scores to
# the map. Then it adds a mask and shows why a mask acts on the scores.

# %%
# Where attnlab comes from if it is not installed here: the folder of a checkout, a wheel, or an address that pip
# understands, for example SOURCE = "/content/attnlab" or SOURCE = "git+https://…". Its bare name is refused: attnlab is
# in no package index, and whoever registers the name there could run code here.
SOURCE = ""

try:
    import attnlab
except ModuleNotFoundError:
    import os
    import subprocess
    import sys
    from importlib.metadata import version
    from importlib.util import find_spec

    if not (os.path.exists(SOURCE) or "://" in SOURCE):
        raise ModuleNotFoundError(
            "attnlab is not installed: set SOURCE above to the folder of a checkout, a wheel or an address"
        ) from None
    # jax is kept as it is: Colab has a build for its own machines.
    kept = {name: version(name) for name in ("jax", "jaxlib") if find_spec(name)}
    if kept and tuple(map(int, kept["jax"].split(".")[:3])) < (0, 10, 2):
        raise ImportError(f"attnlab needs jax 0.10.2 or newer, and {kept['jax']} is installed") from None
    source = os.path.abspath(SOURCE) if os.path.exists(SOURCE) else SOURCE
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", source, *map("==".join, kept.items())], check=True)

# %%
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from attnlab.mechanisms import Softmax, weights
from attnlab.ops.mask import Causal, Full, Window
from attnlab.ops.score import dot
from attnlab.ops.softmax import masked_softmax

np.set_printoptions(precision=8, suppress=True)

# %% [markdown]
# ## Queries, keys and values
#
# Each is a linear map of the same three tokens. Rows are positions.

# %%
x = jnp.array([[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
to_key = jnp.array([[0.0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]])
to_query = jnp.array([[1.0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
to_value = jnp.array([[0.0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]])
q, k, v = x @ to_query, x @ to_key, x @ to_value
print("q", q, "k", k, "v", v, sep="\n")

# %% [markdown]
# ## Scores, weights, output
#
# Attention computes a score for every pair, a softmax over the keys of each query, and a weighted sum of the values.

# %%
scores = dot(q, k)
print(scores)

# %%
map = weights(Softmax(score=dot), q, k, Full())
y = Softmax(score=dot).attend(q, k, v)
print(map)
print(y)
np.testing.assert_allclose(map[0], [0.06337894, 0.46831053, 0.46831053], atol=5e-8)
np.testing.assert_allclose(y[0], [1.93662106, 6.68310531, 1.59506841], atol=5e-7)

# %% [markdown]
# Tutorials print `[2, 7, 1.5]` for the first row: there, the weights were rounded to `[0, .5, .5]` before the sum.
# Scores are usually divided by √K, because the sum of K products of unit variance has variance K:

# %%
scaled = Softmax().attend(q, k, v)
print(scaled)
np.testing.assert_allclose(scaled[0], [1.86387420, 6.31937101, 1.70418870], atol=5e-7)

# %% [markdown]
# ## The map
#
# The map has the weight of each key (a column) for each query (a row).


# %%
def show(map, title):
    _, axes = plt.subplots(figsize=(2.6, 2.6))
    axes.imshow(map, vmin=0, vmax=1, cmap="Blues")
    for (row, column), weight in np.ndenumerate(np.asarray(map)):
        axes.text(column, row, f"{weight:.2f}", ha="center", va="center", color="white" if weight > 0.5 else "black")
    axes.set(xlabel="key", ylabel="query", title=title, xticks=range(map.shape[1]), yticks=range(map.shape[0]))
    plt.show()


show(weights(Softmax(), q, k), "scaled softmax")

# %% [markdown]
# ## A mask acts on the scores
#
# A causal mask hides what comes later. To multiply the finished weights by 0 instead leaves the hidden keys in the
# denominator: rows no longer sum to one.

# %%
causal = weights(Softmax(), q, k, Causal())
show(causal, "causal")
allowed = np.tril(np.ones((3, 3), bool))
wrong = np.where(allowed, weights(Softmax(), q, k), 0)
print("sums of rows, masked after softmax:", wrong.sum(axis=1))
print("sums of rows, masked before:      ", np.asarray(causal.sum(axis=1)))

# %% [markdown]
# Masks combine with `&`, `|` and `~`. A query that may see no key returns zero, not the mean of all values:

# %%
nothing = Causal() & ~Causal()
print(Softmax().attend(q, k, v, nothing))
show(weights(Softmax(), q, k, Causal() & Window(1, 1)), "its own position only")

# %% [markdown]
# ## A decoder attends to an encoder
#
# There is one query and there are four keys; the score is the dot product. The second state gets all the weight.

# %%
state = jnp.array([[10.0, 5, 10]])
encoder = jnp.array([[0.0, 1, 1], [5, 0, 1], [1, 1, 0], [0, 5, 1]])
print("scores", dot(state, encoder)[0])
print("weights", masked_softmax(dot(state, encoder), jnp.ones((1, 4), bool))[0])
context = Softmax(score=dot).attend(state, encoder, encoder)[0]
print("context", context)
np.testing.assert_allclose(context, [5, 0, 1], atol=1e-6)
