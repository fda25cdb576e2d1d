"""Gates and norms: does an output gate or a norm of the heads help, for softmax and for gated-delta?

Claim: none; the study asks what each of the two brings by itself, at equal parameters. Published linear layers have
both. Softmax layers have had a gate since 2025 (Qiu et al. 2025: a sigmoid gate lowers the loss of softmax).
Command: ATTNLAB_DATA=... attnlab run experiments/gates.py
         attnlab run experiments/gates.py task=recall --out runs/recall
Minutes on two cores: not measured; the records sum to 76 minutes of one core while other programs ran (AMD EPYC).
Expected: nats per character, 8 seeds: softmax plain 1.884 (1.876-1.891), gate 1.882, norm 1.892, both 1.885;
gated-delta plain 1.900 (1.895-1.906), gate 1.882, norm 1.868, both 1.872. For gated-delta the norm brings −.033 (joint
interval −.043 to −.023), the gate −.018 (−.030 to −.007) and both −.028 (−.041 to −.015), all better. For softmax the
gate and both are the same within .02, and the norm is unclear, +.008 (−.006 to +.022). Without gate and norm,
gated-delta is worse than softmax, by .017 (.005 to .028).

The data are the characters of Shakespeare. Softmax has a sigmoid gate and gated-delta a SiLU gate, per channel, as
published. The norm is an RMS norm of each head. All variants are matched to plain softmax in their parameters.
Differences below .02 nats count as equal.
"""

from dataclasses import replace

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.mechanisms import MECHANISMS
from attnlab.models import Language
from attnlab.modules.multi_head import MultiHead
from attnlab.modules.position import POSITIONS
from attnlab.tasks.text.text import Shakespeare
from attnlab.training.config import Train

PLAIN = {
    "softmax": MultiHead(gate_activation="sigmoid"),
    "gated-delta": MultiHead(gate_activation="silu"),
}
AROUND = {
    "plain": {},
    "gate": {"gate": "channel"},
    "norm": {"head_norm": "rms"},
    "gate-norm": {"gate": "channel", "head_norm": "rms"},
}

study = Study(
    Experiment(
        task=Shakespeare(length=64),
        model=Language(width=64, heads=4, layers=2, feedforward=256),
        train=Train(
            steps=700,
            batch_size=32,
            learning_rate=3e-3,
            warmup=100,
            seeds=8,
            evaluate_every=175,
            save_every=350,
        ),
    ),
    Variation(
        {
            f"{name}-{part}": {
                "model.mechanism": MECHANISMS[name],
                "model.position": POSITIONS["rotary" if name == "softmax" else "none"],
                "model.attention": replace(layer, **fields),
            }
            for name, layer in PLAIN.items()
            for part, fields in AROUND.items()
        }
    ),
    against={f"{name}-{part}": f"{name}-plain" for name in PLAIN for part in AROUND if part != "plain"},
    question="Does an output gate or a norm of the heads help, for softmax and for gated-delta?",
    match="parameters",
    margin=0.02,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2},
)
