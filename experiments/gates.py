"""Around the mechanism: does the output gate or the norm of the heads matter, for softmax and for gated-delta?

Claim: published linear layers have both, and softmax layers since 2025 a gate (Qiu et al. 2025: a sigmoid gate lowers
the loss of softmax). It is asked what each of the two brings by itself, at equal parameters.
Command: ATTNLAB_DATA=... attnlab run experiments/gates.py
         attnlab run experiments/gates.py task=recall --out runs/recall
Minutes on two cores: not measured; the records of 3 seeds and the rates .001 and .003 sum to 64 minutes of one core
beside other work (AMD EPYC).
Expected: nats per character, 3 seeds, each at .003: softmax plain 1.875 (1.854-1.896), gate 1.880, norm 1.885, both
1.881; gated-delta plain 1.893 (1.885-1.901), gate 1.876, norm 1.870, both 1.866. No difference is significant: for
gated-delta the norm brings −.024 (joint interval −.087 to +.040), the gate −.018, both −.027; for softmax all three
are within .011 and on the wrong side. The page says that 6 to 9 seeds tell the former apart, so the file has 8 and
the rate .003 alone; they are not measured yet.

Characters of Shakespeare. Softmax has a sigmoid gate and gated-delta a SiLU gate, per channel, as published. The norm
is an RMS norm of each head. All are matched to plain softmax in their parameters. Differences below .02 nats count as
equal.
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
    question="Does the output gate or the norm of the heads matter, for softmax and for gated-delta?",
    match="parameters",
    margin=0.02,
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2},
)
