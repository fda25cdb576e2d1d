"""Self-attention against a recurrent network and stacked convolutions: who recalls from far away?

Claim: attention reaches any token in one step, a recurrent network through all steps between, stacked convolutions no
further than their windows (Vaswani et al. 2017, table 1). So attention recalls at every distance alike, convolutions
as far as they see (two of kernel 3, 5 tokens; six dilated ones, 127), a recurrent network what its state still holds.
Command: attnlab run experiments/rnn_vs_attention.py
Minutes on two cores: some 200 in one process on one core beside another training (AMD EPYC), by the first two variants.
Expected: accuracy over all questions, and by octaves of distance ("accuracy.16": 16 to 31 tokens behind where the key
was told), 5 seeds: attention 99.93% (99.78-100), at the rate .002. The others are not yet measured so. As it was once,
with one rate of .002, distances to 120 and 3 seeds, in 2,000 steps: attention 100, 42.2 and 100%, linear attention 100%
in all, both alike at every distance; GRU 42.1% (41.8-42.4), LSTM 42.0 (41.5-42.5), dilated convolutions 40.9
(39.8-42.0), which had not learned; convolutions 71 to 87% at 2 and 3 tokens, 33 to 36 at 4 to 7, and 12 to 14 beyond.
At distances to 63 one seed of the GRU learned nothing in 4,000 steps at .002 and .005, and came to 59.7% at .01: 66,
64, 60, 60 and 59% from 2, 4, 8, 16 and 32 tokens on. Naming the commonest value told is right in 41%, naming any in 13:
what convolutions do not see they do not recall. Seconds a token, in training and decoding: `benchmarks/recurrent.py`.

Four pairs of a key and a value, then four questions at any places among 56, the others blank. All have the parameters
of the attention within 2%, two layers of width 64 there. Recall is known to come and go with the rate (Arora et al.
2023), so each learns at two, of which validation chooses. A seed that has learned stops.
"""

from attnlab.lab.study import Experiment, Study
from attnlab.lab.variation import Variation
from attnlab.mechanisms import Linear, Softmax
from attnlab.models import Language
from attnlab.models.convolutional import ConvolutionalLanguage
from attnlab.models.recurrent import RecurrentLanguage
from attnlab.tasks.recall import Recall
from attnlab.training.config import Train

study = Study(
    Experiment(
        task=Recall(vocabulary=16, pairs=4, queries=4, length=64, by_distance=True),
        model=Language(width=64, heads=1, layers=2, feedforward=128),
        train=Train(
            steps=2000, batch_size=32, learning_rate=(2e-3, 1e-2), warmup=100, seeds=5, save_every=250, target=0.99
        ),
    ),
    Variation(
        {
            "attention": {"model.mechanism": Softmax()},
            "linear": {"model.mechanism": Linear()},
            "gru": {"model": RecurrentLanguage(width=72, layers=2, cell="gru")},
            "lstm": {"model": RecurrentLanguage(width=62, layers=2, cell="lstm")},
            "convolution": {"model": ConvolutionalLanguage(width=64, layers=2, feedforward=128)},
            "dilated": {"model": ConvolutionalLanguage(width=36, layers=6, growth=2, feedforward=72)},
        }
    ),
    question="Who recalls from far away: attention, a recurrent network or stacked convolutions?",
    match="parameters",
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2},
)
