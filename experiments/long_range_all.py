"""Long-range tests of every mechanism: non-causal ones classify, causal ones do recall and induction.

Claim: none of our own. The tasks are those of experiments/long_range.py, which has the published numbers.
Command: attnlab run experiments/long_range_all.py
         attnlab run experiments/long_range_all.py task=listops --workers 2     (every mechanism on one of the tasks)
         attnlab run experiments/long_range_all.py task=figures --workers 2
         attnlab run experiments/long_range_all.py model.mechanism=linear       (one of them on the first five tasks; on
         induction and recall by the variant's name, as model.mechanism=recall-linear)
Minutes on two cores: lists 37 with `--workers 2` and jax's compilation cache (AMD EPYC), interruptions left out, pairs
53 and text 68 likewise; pixels 135 while tests ran, in two parts, the first 94 with a slower Reformer; recall some 90
and induction some 80 likewise, in parts; curves 353, the sum of the times of its variants, two at a time, interruptions
included; some 14 hours for all.
To be measured again: the numbers of Reformer, Hedgehog, delta, gated-delta, KDA and gated-linear, except those of
Reformer and Hedgehog on lists, pairs and texts, which were trained again beside softmax alone (jax 0.12.0.1). They were
measured before these used the scales of their authors' code.
Expected: accuracy, 3 seeds.
- Lists: softmax 40.2% (37.4-42.9), by blocks 40.2 (37.6-42.7), Nyström 40.1 (36.4-43.8), local-p 39.8 (37.6-42.1),
  BigBird 39.8 (38.7-40.9), Hedgehog 39.6 (38.7-40.5), Taylor 39.6 (37.5-41.6), sigmoid 39.5 (39.2-39.8), Performer 39.4
  (37.6-41.2), Longformer 39.4 (37.0-41.7), DPFP 39.2 (37.4-41.1), Sinkhorn 39.1 (36.9-41.4), cosFormer 39.0
  (38.3-39.7), Reformer 39.0 (36.2-41.9), windows 38.8 (38.2-39.3), ReBased 38.7 (36.7-40.8), strided 38.3 (37.1-39.4),
  linear 38.0 (37.6-38.5), Synthesizer 37.7 (35.8-39.5), Linformer 36.0 (33.9-38.1). With three seeds none differs
  significantly from softmax, whose own seeds are between 39.3 and 41.4.
- Pixels: Sinkhorn 90.8% (88.2-93.3), Longformer 88.8 (85.1-92.4), windows 87.4 (83.1-91.7), Nyström 86.1 (82.1-90.1),
  strided 80.8 (77.6-84.0), Linformer 76.4 (72.1-80.8), BigBird 75.1 (64.8-85.4), local-p 71.2 (65.8-76.7), Performer
  69.6 (68.0-71.3), softmax 69.3 (60.2-78.4), by blocks 69.1, DPFP 68.0 (63.6-72.4), ReBased 67.6 (61.0-74.2), cosFormer
  60.3 (44.1-76.5), Taylor 60.2 (54.3-66.1), Reformer 57.5 (56.2-58.8), sigmoid 55.0 (48.1-61.9), Hedgehog 50.1
  (39.7-60.4), Synthesizer 48.5 (47.3-49.7), linear 35.1 (33.4-36.8). With intervals that hold for all nineteen
  comparisons at once, three seeds show no significant difference from softmax, whose own seeds are between 65.9 and
  73.2. Mechanisms that see few tokens, or summarise, lead.
- Recall: softmax, by blocks, sigmoid, delta, gated-delta and Taylor 100% in every seed, ReBased 100.00 (99.98-100),
  cosFormer, KDA and local-p 99.99, DPFP 99.98, SSD 99.93, Reformer 99.5 (99.1-99.9), Hedgehog 98.5 (91.9-100), BigBird
  98.1 (95.5-100), Performer 93.3 (85.7-100), lightning 91.6 (100, 75 and 100 by seed), retention 88.4 (100, 65 and
  99.98), linear 83.7 (61.2-100), gated-linear 80.6 (42, 99.9 and 99.4), fast-weight 80.4 (99.9, 42 and 99.1), strided
  66.6 (55, 52 and 93), Synthesizer 51.3 (36.2-66.5), windows 25.8 (24.8-26.8), Longformer 25.7 (24.5-26.9). None
  differs significantly from softmax: the seeds of one variant form two clusters 57 points apart, so that a difference
  like that of windows takes five pairs that agree. Among the eight mechanisms of experiments/long_range.py windows are
  worse.
- Induction: 100% in every seed after 250 steps (500 for linear, SSD and strided), with these exceptions. Lightning and
  gated-linear reach 99.87% (99.31-100) after 250 and 500. After all 1,500 steps BigBird reaches 95.1 (90.3-99.8),
  local-p 87.4 (97, 70 and 95 by seed), Longformer 51.3 (49.8-52.8), windows 51.3 (49.3-53.3) and Synthesizer 15.5
  (9.9-21.1). Only Synthesizer differs significantly from softmax; it is worse. For windows that takes five pairs that
  agree, as on recall.
- Curves: Longformer 97.8% (96.8-98.7), windows 97.3 (96.0-98.5), Nyström 96.4 (93.0-99.9), ReBased 95.6 (94.3-96.9),
  Linformer 95.0 (92.6-97.3), BigBird 93.8 (90.6-97.0), Sinkhorn 90.3 (83.6-97.0), Taylor 90.3 (84.8-95.7), sigmoid 88.9
  (79.9-97.9), cosFormer 87.7 (79.8-95.5), DPFP 87.2 (81.3-93.2), strided 86.0 (79.1-92.8), Synthesizer 82.8
  (75.0-90.7), softmax 80.2 (74.0-86.4), Hedgehog 77.4 (43.3-100), by blocks 77.2 (70.0-84.4), local-p 73.1 (58.4-87.9),
  Performer 73.0 (65.9-80.0), Reformer 71.0 (60.1-82.0), linear 52.4 (48.9-56.0). With intervals that hold for all
  nineteen comparisons at once, three seeds show no significant difference from softmax. Most comparisons would take
  five seeds.
- Pairs: Nyström 89.3% (84.3-94.2), Sinkhorn 88.2 (83.4-93.0), strided 87.8 (86.8-88.8), Longformer 86.9 (82.7-91.2),
  windows 86.3 (80.5-92.1), linear 86.0 (84.9-87.2), cosFormer 85.9 (85.1-86.7), BigBird 85.9 (83.4-88.3), ReBased 85.8
  (84.6-87.1), Hedgehog 85.8 (85.2-86.3), Taylor 85.5 (84.9-86.0), by blocks 85.4 (83.9-86.9), DPFP 85.3 (82.2-88.5),
  sigmoid 85.3 (84.4-86.2), softmax 85.2 (84.2-86.2), Reformer 85.2 (84.4-86.0), Performer 84.6 (82.6-86.6), local-p
  73.7 (86, 48 and 87 by seed), Synthesizer 71.4 (84, 82 and 48 by seed), Linformer 50.1 (46.2-53.9). None differs
  significantly from softmax. Two mechanisms have a seed that has learned almost nothing yet, so that even the deficit
  of Linformer in all three seeds takes more pairs.
- Text: Sinkhorn 77.5% (73.7-81.2), Nyström 77.1 (75.5-78.8), ReBased 76.4 (76.2-76.5), windows 76.2 (75.1-77.4), linear
  76.1 (75.1-77.1), strided 76.1 (74.9-77.3), Hedgehog 75.9 (75.4-76.5), sigmoid 75.8 (73.7-77.9), Taylor 75.6
  (74.7-76.6), cosFormer 75.5 (73.5-77.5), Longformer 75.4 (71.2-79.6), Reformer 75.4 (74.6-76.2), by blocks 75.2
  (74.2-76.2), DPFP 75.1 (74.3-76.0), Performer 75.0 (73.2-76.7), softmax 74.8 (74.5-75.2), local-p 74.5 (70.9-78.1),
  BigBird 74.3 (72.4-76.2), Synthesizer 73.0 (72.5-73.6). None of these differs significantly from softmax. Linformer
  has 66.0 (65.9-66.2), which is worse.
Reference values: texts 50%, and 86.9 by a naive Bayes of their words, whatever their order; pairs 50, and 98.6
likewise, of 20,000 each; the others as in experiments/long_range.py.

All models have as many parameters as softmax on lists, within 2%. Where a task or a mechanism has more parameters of
its own, the network is narrower. On induction and recall each mechanism has a short convolution before it. Linformer
has rank 4 instead of 64, because its projections are as long as the sequence. Windows, blocks and landmarks are 16
tokens instead of 64, which would cover most of a list, and strides are 8: mechanisms with a limited view are to have
one here too. Texts are generated, so that no data set is needed. The words of pairs indicate their class more clearly
(`tilt` 1) than those of single texts (.3). Steps, batches and learning rates of a task are those of
experiments/long_range.py, except that texts and pairs have batches of 16 instead of 32.
"""

from dataclasses import fields, replace
from typing import Any

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.mechanisms import MECHANISMS, CheckedMechanism, ShortConvolution
from attnlab.mechanisms.reformer import Reformer
from attnlab.mechanisms.sinkhorn import Sinkhorn
from attnlab.models import Language
from attnlab.models.classifier import Classifier
from attnlab.models.pair_classifier import PairClassifier
from attnlab.models.vit import ViT
from attnlab.modules.position import Learned, Sinusoidal
from attnlab.tasks.synthetic.induction import Induction
from attnlab.tasks.synthetic.listops import ListOps
from attnlab.tasks.synthetic.pathfinder import Pathfinder
from attnlab.tasks.synthetic.recall import Recall
from attnlab.tasks.text.documents import DocumentPairs, Documents
from attnlab.tasks.vision.images import Figures
from attnlab.training.config import Train

SIZES: dict[str, Any] = {"width": 64, "heads": 4, "layers": 2, "feedforward": 128}
PIXELS = ViT(**SIZES, patch=1, position=Sinusoidal(), activation="relu")
CURVES = replace(PIXELS, position=Learned(length=144))
READER = Language(width=64, heads=1, layers=2, feedforward=128)
SORTING = {
    "lists": (ListOps(), Classifier(**SIZES), 128),
    "text": (Documents(shortest=128, longest=256), Classifier(**SIZES), 256),
    "pairs": (DocumentPairs(tilt=1.0, shortest=64, longest=128), PairClassifier(**SIZES), 128),
    "pixels": (Figures(size=16), PIXELS, 256),
    "curves": (Pathfinder(size=12, dashes=2, distractors=0), CURVES, 144),
}
TELLING = {
    "induction": (Induction(tested=(64,)), READER, 64),
    "recall": (Recall(vocabulary=16, pairs=4, queries=4, length=128), READER, 128),
}
# Training settings that differ by task. Some tasks are learned faster, some late. A sequence of induction asks for one
# token only, so induction takes more steps and larger batches, and stops as soon as it is learned.
FAST: dict[str, Any] = {"train.learning_rate": 2e-3}
OWN = {
    "text": FAST,
    "pairs": FAST,
    "curves": FAST | {"train.batch_size": 32, "train.steps": 3000},
    "induction": {"train.steps": 1500, "train.batch_size": 64, "train.target": 0.99},
}


def asked(name: str, task: Any, model: Any, length: int, kind: str) -> dict[str, dict[str, Any]]:
    """Returns one variant for each mechanism with the trait `kind`, made for the length."""
    own = OWN.get(name, {})
    return {
        f"{name}-{called}": {"task": task, "model": model, "model.mechanism": made(mechanism, length, kind), **own}
        for called, mechanism in MECHANISMS.items()
        if getattr(mechanism.traits, kind) and not isinstance(mechanism, ShortConvolution)
    }


def made(mechanism: CheckedMechanism, length: int, kind: str) -> CheckedMechanism:
    """Returns the mechanism made for the length; for tasks that decode, with a short convolution before it."""
    sized = small(mechanism).with_length(length)
    return ShortConvolution(sized) if kind == "decodes" else sized


def small(mechanism: CheckedMechanism) -> CheckedMechanism:
    """Returns the mechanism with small windows, blocks and landmarks, and with a rank that its parameters allow."""
    narrow = {"left": 16, "right": 16, "stride": 8, "size": 16, "landmarks": 16, "rank": 4}
    has = {field.name for field in fields(mechanism)}
    if has & narrow.keys() or isinstance(mechanism, Reformer | Sinkhorn):
        narrow["block"] = 16
    return replace(mechanism, **{name: n for name, n in narrow.items() if name in has})


variants: dict[str, dict[str, Any]] = {}
for kind, tasks in (("non_causal", SORTING), ("decodes", TELLING)):
    for name, (task, model, length) in tasks.items():
        variants |= asked(name, task, model, length, kind)

study = Study(
    Experiment(
        task=SORTING["lists"][0],
        model=SORTING["lists"][1],
        train=Train(steps=1000, batch_size=16, learning_rate=1e-3, warmup=200, seeds=3, save_every=500),
    ),
    Variation(variants),
    question="Which of all mechanisms uses distant tokens best, in classification, recall and induction?",
    match="parameters",
    quick={"train.steps": 2, "train.warmup": 1, "train.seeds": 2, "train.batch_size": 2},
)
