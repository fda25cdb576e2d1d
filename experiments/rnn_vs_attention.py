"""Which recall from far away: attention, recurrent networks or stacked convolutions?

Claim: attention reaches any token in one step, a recurrent network through all steps between, stacked convolutions no
further than their windows (Vaswani et al. 2017, table 1). So attention recalls equally well at every distance.
Convolutions recall within their receptive field (two of kernel 3, 5 tokens; six dilated ones, 127). A recurrent network
recalls what its state still contains.
Command: attnlab run experiments/rnn_vs_attention.py
Minutes on two cores: 139 in one process on one core while another training ran (AMD EPYC).
Expected: accuracy over all questions, 5 seeds: linear attention 100.00% (99.99-100), attention 99.93 (99.78-100); GRU
59.5 (41.5-73.7), LSTM 59.4 (54.2-64.6), dilated convolutions 41.8 (41.3-42.1), convolutions 14.1 (13.7-14.5), all four
worse.
By octaves of distance ("accuracy.16": the key occurred 16 to 31 tokens before), from 2, 4, 8, 16 and 32 on:
- attention: 99.7 and more at each.
- GRU 57, 61, 59, 59, 60 and LSTM 57, 59, 60, 59, 59: what they store of four pairs they keep for 63 tokens.
- dilated convolutions 27, 44, 42, 42, 42: they have learned which values occurred but not which key they belong to
  (answering with the most frequent value of the sequence is right in 41%).
- convolutions 58, 39, 12, 13, 13: they do not recall what is outside their receptive field (naming any value is right
  in 13).
GRU and LSTM learned at the learning rate .01 alone, the dilated convolutions at neither rate. Seconds per token, in
training and decoding: `benchmarks/recurrent.py`.

A sequence has four pairs of a key and a value, then four questions at random positions among 56; the other positions
are blank. All models have as many parameters as the attention model within 2%, which has two layers of width 64.
Success at recall is known to depend on the learning rate (Arora et al. 2023), so each model is trained at two rates, of
which validation chooses one. A seed that has learned the task stops.
"""

from attnlab.lab.study import Experiment, Study, Variation
from attnlab.mechanisms import Linear, Softmax
from attnlab.models import Language
from attnlab.models.convolutional import ConvolutionalLanguage
from attnlab.models.recurrent import RecurrentLanguage
from attnlab.tasks.synthetic.recall import Recall
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
    question="Which recall from far away: attention, recurrent networks or stacked convolutions?",
    match="parameters",
    quick={"train.steps": 8, "train.warmup": 2, "train.seeds": 2},
)
