# %% [markdown]
# # Linear attention is a recurrence
#
# If a feature map φ replaces the exponential of softmax, the sum over the past becomes a matrix that is carried from
# token to token. This notebook shows what that costs and what it saves.

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
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from attnlab import MECHANISMS
from attnlab.mechanisms import Linear, Softmax, causal, weights

T, K = 64, 8  # tokens, and the width of queries, keys and values
q, k, v = (jax.random.normal(jax.random.key(n), (T, K)) for n in range(3))

# %% [markdown]
# ## The same result in three ways
#
# Linear attention is computed as a map of all pairs, as a loop that stores only S = Σ φ(k)ᵀv and z = Σ φ(k), and by the
# library.

# %%
phi = lambda x: jax.nn.elu(x) + 1

pairs = jnp.tril(phi(q) @ phi(k).T)
by_pairs = pairs @ v / pairs.sum(axis=1, keepdims=True)


def step(memory, token):
    S, z = memory
    q, k, v = token
    S, z = S + jnp.outer(phi(k), v), z + phi(k)
    return (S, z), phi(q) @ S / (phi(q) @ z)


_, by_loop = jax.lax.scan(step, (jnp.zeros((K, K)), jnp.zeros(K)), (q, k, v))
by_library = causal(Linear(), q, k, v)
print("largest difference:", float(abs(by_pairs - by_loop).max()), float(abs(by_pairs - by_library).max()))
assert np.allclose(by_pairs, by_loop, atol=1e-5)
assert np.allclose(by_pairs, by_library, atol=1e-5)

# %% [markdown]
# ## Rank
#
# Without a mask, the map of linear attention is a product of two thin matrices, so its rank is at most the number of
# features. Softmax has no such bound.

# %%
for name, mechanism in {"softmax": Softmax(), "linear": Linear()}.items():
    values = np.linalg.svd(np.asarray(weights(mechanism, q, k), np.float64), compute_uv=False)
    print(f"{name:8} rank {int((values > 1e-6 * values[0]).sum()):3} of {T}")
    plt.semilogy(values / values[0], label=name)
plt.axvline(K, color="grey", linestyle=":")
plt.gca().set(xlabel="n", ylabel="singular value / largest", title="dotted: the number of features", ylim=(1e-9, 2))
plt.legend()
plt.show()

# %% [markdown]
# ## State
#
# To generate the next token, softmax needs all keys and values, and linear attention needs one matrix. The lines of the
# other three mechanisms lie on each other, because each of them stores a matrix of the same size.

# %%
lengths = np.array([16, 64, 256, 1024, 4096])
for name in ("softmax", "linear", "gated-linear", "delta"):
    state = lambda length, name=name: jax.tree.leaves(jax.eval_shape(lambda: MECHANISMS[name].start(length, 64, 64)))
    bytes = [sum(x.size * x.dtype.itemsize for x in state(int(length))) for length in lengths]
    plt.loglog(lengths, bytes, marker="o", label=name)
plt.gca().set(xlabel="tokens", ylabel="bytes per head", title="decoding state, keys and values 64 wide")
plt.legend()
plt.show()

# %% [markdown]
# ## Cost
#
# The library counts the operations of a causal pass, with keys and values 64 wide. The lines cross where there are
# about as many tokens as features.

# %%
for name in ("softmax", "linear"):
    flops = [MECHANISMS[name].cost(int(length), int(length), 64, 64).flops for length in lengths]
    plt.loglog(lengths, flops, marker="o", label=name)
plt.gca().set(xlabel="tokens", ylabel="operations per head")
plt.legend()
plt.show()
