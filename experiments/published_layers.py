"""Layers as published: which language model is best on the characters of Shakespeare, at equal parameters?

Claim: none; the study asks whether small models of published layers differ significantly with several seeds. Papers
compare their own layer with others at 340 million parameters or more, with one seed.
Command: ATTNLAB_DATA=... attnlab run experiments/published_layers.py
         attnlab run experiments/published_layers.py task=recall --out runs/recall
Minutes on two cores: not measured; the records sum to 104 minutes of one core, pauses and other programs included (AMD
EPYC).
Expected: nats per character on the last tenth after 700 steps, mean of 3 seeds, each at .003, the larger of the two
rates: Mamba-2 1.739 (1.733-1.744) is better than Transformer++, 1.854 (1.822-1.886), and Based, 1.933 (1.913-1.953),
is worse. All others are unclear with 3 seeds: Gated DeltaNet 1.751 (1.726-1.775), KDA 1.791 (1.778-1.805), Qwen3-Next
1.808 (1.794-1.822), Kimi Linear 1.830 (1.797-1.863), gated softmax 1.834 (1.815-1.853), GLA 1.851 (1.821-1.881),
DeltaNet 1.879 (1.838-1.921) and RetNet 1.983 (1.930-2.036). All have 96,600 to 96,900 parameters. The page asks for 4
seeds to show the difference of Gated DeltaNet, 5 for KDA and 6 for Qwen3-Next. Recall is not measured yet.

Each variant is a model of `attnlab list models`; docs/attention-layers.md describes its layers. Widths are matched to
the parameters of Transformer++. Differences below .02 nats count as equal.
"""

from attnlab.lab.study import Experiment, Study, over
from attnlab.models.published import PUBLISHED
from attnlab.tasks.text.text import Shakespeare
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Shakespeare(length=64),
        model=PUBLISHED["transformer++"],
        train=Train(
            steps=700,
            batch_size=32,
            learning_rate=(1e-3, 3e-3),
            warmup=100,
            seeds=3,
            evaluate_every=175,
            save_every=350,
        ),
    ),
    over("model", **PUBLISHED),
    question="Which published language model is best on the characters of Shakespeare, at equal parameters?",
    match="parameters",
    margin=0.02,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2, "train.learning_rate": 1e-3},
)
