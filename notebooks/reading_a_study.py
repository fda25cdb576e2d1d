# %% [markdown]
# # Reading a study
#
# This notebook shows what a few seeds can show: an interval, a verdict, and the number of seeds for the next study.

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
# ## Run one
#
# The study compares softmax with linear attention on a small task, which is to recall the value of a key. Both variants
# have five seeds, and each variant is one program.

# %%
from pathlib import Path
from tempfile import mkdtemp

from attnlab.lab import Experiment, Study, Train, over, run
from attnlab.mechanisms import Linear, Softmax
from attnlab.models import Language
from attnlab.tasks.synthetic.recall import Recall

study = Study(
    Experiment(
        task=Recall(vocabulary=16, pairs=4, queries=4),
        model=Language(width=32, heads=1, layers=2, feedforward=0),
        train=Train(steps=240, batch_size=32, learning_rate=1e-2, warmup=20, seeds=5, evaluate_every=80),
    ),
    over("model.mechanism", softmax=Softmax(), linear=Linear()),
    question="Does softmax recall the values of four keys better than linear attention?",
    name="reading",
    margin=0.02,
)
results = run(study, out=Path(mkdtemp()))

# %% [markdown]
# ## The result
#
# Each variant is compared with the first one, seed by seed. *Better* and *worse*: the interval of the difference
# excludes zero. *The same*: the interval is inside the margin, here of two points. *Unclear*: neither; the verdict then
# states which difference this study could have found.

# %%
results.verdicts()

# %%
results.table()

# %%
results.curves()

# %% [markdown]
# ## By hand
#
# This cell computes the same from the recorded values. The interval over seeds is Student's; the verdict comes from the
# paired differences. A seed that diverged has no value, so values are paired by seed, not by position. If all
# differences are equal, the change by one test example takes the place of their spread. With several learning rates,
# the intervals above are wider, because the same seeds chose the rate.

# %%
from attnlab.lab import RunFolder
from attnlab.lab.statistics import compare, interval

reference, other = study.variants()
values = {}
for name in (reference, other):
    result = RunFolder(results.folder / name).read("result")
    values[name] = dict(zip(result["seeds"], result["metrics"]["accuracy"]["values"], strict=True))
for name, by_seed in values.items():
    low, high = interval([*by_seed.values()])
    rounded = {seed: round(value, 3) for seed, value in by_seed.items()}
    print(f"{name:8} {rounded}  95% interval {low:.3f} to {high:.3f}")
both = [seed for seed in values[other] if seed in values[reference]]
first, second = ({seed: values[name][seed] for seed in both} for name in (reference, other))
found = compare(second, first, study.margin, metric_step=1 / result["examples"])
print(f"{other} is {found.verdict}: {found.difference:+.3f} ({found.low:+.3f} to {found.high:+.3f})")
print("no effect size" if found.effect is None else f"effect {found.effect:.2f}")

# %% [markdown]
# ## One seed is not enough
#
# A single value has no spread and therefore no interval. The library raises an error instead of inventing one.

# %%
try:
    interval([*first.values()][:1])
except ValueError as refusal:
    print(refusal)

# %% [markdown]
# ## How many seeds next time?
#
# This number of seeds finds a difference as large as the margin in four studies of five, at the spread of this study:

# %%
print(found.seeds_for_margin, "seeds")
