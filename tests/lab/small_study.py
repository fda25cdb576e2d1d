"""Small studies of two variants."""

from dataclasses import replace

from attnlab.lab.study.study import Study, change
from attnlab.lab.study.variation import over
from attnlab.mechanisms import Linear, Softmax
from tests.small import EXPERIMENT, TINY

STUDY = Study(EXPERIMENT, over("model.mechanism", softmax=Softmax(), linear=Linear()), name="small", question="Which?")
EIGHT = TINY | {"train.steps": 8}
QUICKLY = replace(STUDY, base=change(EXPERIMENT, **EIGHT))  # compiles very quickly and has no maps
ONE = replace(STUDY, vary=over("model.mechanism", softmax=Softmax()))
