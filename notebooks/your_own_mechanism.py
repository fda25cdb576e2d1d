# %% [markdown]
# # Your own mechanism in twenty lines
#
# This notebook defines a mechanism, checks its parity, compares it with softmax in an ablation, and writes a report.

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

# %% [markdown]
# ## The mechanism
#
# Weights that fall off with the squared distance between query and key, an idea older than attention (Nadaraya and
# Watson 1964). The class defines the weight of every allowed pair. Masks, padding, packing, cached decoding and the map
# follow from it.

# %%
from dataclasses import dataclass

from attnlab.mechanisms import Pairwise
from attnlab.mechanisms.cost import Cost
from attnlab.ops.softmax import masked_softmax


@dataclass(frozen=True)
class Nearness(Pairwise):
    """y_t = Σ_j softmax_j(−|q_t − k_j|² / (2√K)) v_j."""

    def weights(self, q, k, allowed, *, i, j, bias=None):
        """Return the weights [T S]; near keys have larger ones."""
        distance = (q * q).sum(1)[:, None] - 2 * q @ k.T + (k * k).sum(1)[None, :]
        return masked_softmax(-0.5 * distance * q.shape[1] ** -0.5, allowed)

    def cost(self, T, S, K, V, block=None):
        """Return the cost: two products of all pairs, and a few operations for each pair."""
        return Cost(T * S * (2 * K + 2 * V + 9), 4 * (T * K + S * (K + V) + T * V), 4 * S * (K + V))


# %% [markdown]
# ## Registration
#
# After this cell every `model.mechanism=` can name the mechanism.

# %%
import attnlab

attnlab.MECHANISMS["nearness"] = Nearness()

# %% [markdown]
# ## Parity
#
# Do all forms agree in float64 (whole sequence, blocks, one token after the other, padding, vmap), and how large is the
# relative error in float32? The first lines show the largest difference of each comparison.

# %%
from attnlab.analysis.forms import agreement
from attnlab.analysis.rounding import errors

for form, found in agreement(Nearness()).items():
    print(f"{form:12} {found}")
print(f"{'float32':12} {errors(Nearness(), 131)['float32']}")

# %% [markdown]
# ## An ablation
#
# Both mechanisms read four pairs of a key and a value and are then asked for the values. Each has three seeds, trained
# together with the same data in the same order, so that differences pair by seed. This takes seconds here. A reliable
# result needs more steps and seeds.

# %%
from pathlib import Path
from tempfile import mkdtemp

from attnlab.lab import Experiment, Study, Train, over, run
from attnlab.mechanisms import Softmax
from attnlab.models import Language
from attnlab.tasks.synthetic.recall import Recall

study = Study(
    Experiment(
        task=Recall(vocabulary=16, pairs=4, queries=4),
        model=Language(width=32, heads=1, layers=2, feedforward=0),
        train=Train(steps=240, batch_size=32, learning_rate=1e-2, warmup=20, seeds=3, evaluate_every=80),
    ),
    over("model.mechanism", softmax=Softmax(), nearness=Nearness()),
    question="Is nearness as good as softmax at recalling the values of four keys?",
    name="nearness",
    margin=0.02,
)
out = Path(mkdtemp())
results = run(study, out=out)
results.verdicts()

# %%
results.table()

# %%
results.maps()

# %% [markdown]
# ## Later, elsewhere
#
# The report needs only the folder. To run the model again, the mechanism must be registered again: in a shell,
# `attnlab sample RUN --input "k0 v1 k1 v2 k2 v3 k3 v4 k2" --code mine.py` first runs a file that registers it.
# The input has four keys with their values, then one key as the question.

# %%
from attnlab.lab import report

print(report(out / "nearness").name)
model, data = attnlab.lab.load(out / "nearness" / "nearness")
prompt = data.encode_prompt("k0 v1 k1 v2 k2 v3 k3 v4 k2")
print(data.format_answer(data.answer(model, prompt)))
