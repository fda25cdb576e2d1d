"""Malformed experiment files, and the words that must be in the message."""

# The valid experiment file, which the cases replace in whole or in part.
TEXT = """from attnlab.data.text.units import Bpe
from attnlab.decoding import Beam, Sample
from attnlab.lab.study import Experiment, Study
from attnlab.lab.study.variation import Variation, chain, over, product, zipped
from attnlab.mechanisms import Linear, Softmax
from attnlab.models import Language, AssociativeMemory, Seq2Seq, Transformer
from attnlab.tasks import Reverse
from attnlab.training.config import Train

task = Reverse(train_examples=64, valid_examples=8, test_examples=8, symbols=5, train_longest=6, longest=6, buckets=1)
train = Train(steps=12, batch_size=4, warmup=2, seeds=2, evaluate_every=6, save_every=6)
model = Transformer(width=8, heads=2, layers=1)
study = Study(
    Experiment(task, model, train),
    over("model.mechanism", softmax=Softmax(), linear=Linear()),
    "which?",
    quick={"train.steps": 2},
)
"""
BASE = "Experiment(task, model, train)"
VARY = 'over("model.mechanism", softmax=Softmax(), linear=Linear())'


# The content of a whole file, and the words of its message. Every message begins with the name of the file.
FILES = [
    ("study = (", ".py:1: '(' was never closed"),
    ("x = 1\nif x\n", ".py:2: expected ':'"),
    ("  study = 1", ".py:1: unexpected indent"),
    ("study = 'half", ".py:1: unterminated string literal"),
    ("", "no `study` is defined; expected study ="),
    ("study = None", "no `study` is defined"),
    ("study = 3", "`study` is of type int"),
    ("study = {'model': 1}", "`study` is of type dict"),
    ("import attnlabb", ".py:1: ModuleNotFoundError: No module named 'attnlabb'"),
    ("raise ValueError('mine')", ".py:1: mine"),
    ("x = 1\n1 / 0", ".py:2: ZeroDivisionError"),
    ("import sys\nsys.exit(0)", ".py:2: SystemExit: 0"),
    ("def f(): f()\nf()", ".py:1: RecursionError"),
    ("raise Exception('two\\nlines')", ".py:1: Exception: two lines"),
    ("study = 1\0", "source code string cannot contain null bytes"),
    (b"study = '\xff\xfe'", "codec can't decode byte 0xff"),
    (b"# coding: nonsense\nstudy = 1", "encoding"),
    ("(" * 500, ".py:1: "),
]


# A part of the valid experiment file, its replacement, and the words of the message.
PLACES = [
    ("heads=2", "heads=3", ".py:12: model.heads=3 must divide model.width=8"),
    ("heads=2", "head=2", ".py:12: TypeError: "),
    ("heads=2", "heads='2'", ".py:12: "),
    ("heads=2", "heads=2.0", "model.heads=2.0 must be a whole number"),
    ("heads=2", "heads=True", "model.heads=True must be a whole number"),
    ("width=8", "width=float('nan')", ".py:12: "),
    ("layers=1", "layers=1, mechanism='softmax'", "model.mechanism='softmax' must be a mechanism"),
    ("layers=1", "layers=1, mechanism=Softmax", "must be a mechanism"),
    ("layers=1", "layers=1, position='rotary'", "model.position='rotary' must be a position"),
    ("layers=1", "layers=1, cross=Linear", ".py:12: "),
    ("layers=1", "layers=1, dtype='float8'", "model.dtype='float8' must be one of float32"),
    ("layers=1", "layers=1, norm='batch'", "model.norm='batch' must be one of layer, rms"),
    ("layers=1", "layers=1, dropout=float('nan')", "model.dropout=nan must be at least 0 and below 1"),
    ("layers=1", "layers=1, mechanism=Linear(block='64')", ".py:12: "),
    ("symbols=5", "symbols=0", "task.symbols=0 must be a whole number in 1 "),
    ("symbols=5", "symbols=True", "task.symbols=True must be a whole number"),
    ("symbols=5", "metric='accuracy'", "task.metric='accuracy' is not known"),
    ("train_longest=6", "train_longest=6.5", "task.train_longest=6.5 must be a whole number"),
    ("train_longest=6", "train_longest=10**6", "task.train_longest=1000000 must be a whole number in 1 … 65536"),
    ("train_examples=64", "train_examples=2**31 - 1", "task.train_examples=2147483647 must be a whole number in 1 … "),
    ("seeds=2", "seeds='0,1'", "train.seeds='0,1' must be a whole number"),
    ("seeds=2", "seeds=[0, 1]", "train.seeds=[0, 1] must be a whole number"),
    ("seeds=2", "seeds=(0, 0.5)", "train.seeds=(0, 0.5) must be whole numbers"),
    ("seeds=2", "seeds=2, learning_rate='1e-3'", "train.learning_rate='1e-3' must be a number"),
    ("seeds=2", "seeds=2, learning_rate=(1e-3, None)", "train.learning_rate=(0.001, None) must be numbers"),
    ("seeds=2", "seeds=2, target=10**400", "train.target="),
    ("seeds=2", "seeds=2, clip=None", "train.clip=None must be a number"),
    ("seeds=2", "seeds=2, batchsize=4", ".py:11: TypeError: "),
    (BASE, "Experiment(task, model, 3)", "train=3 must be a Train"),
    (BASE, "Experiment(None, model, train)", "task=None must be a task"),
    (BASE, "Experiment('reverse', model, train)", "task='reverse' must be a task"),
    (BASE, "Experiment(task, Softmax(), train)", "model=Softmax("),
    (BASE, "Experiment(model, task, train)", "task and model are swapped"),
    (VARY, "over('model', a=Softmax())", "model=Softmax("),
    (BASE, "Experiment(task, model, train, decoder='beam')", "decoder='beam' must be a decoder"),
    (BASE, "Experiment(task, model, train, decoder=Beam(best=9))", "best=9 must be at most size=5"),
    (BASE, "Experiment(task, model, train, decoder=Sample(temperature=0))", "temperature=0 must be above 0"),
    (BASE, "Experiment(task, model, train, decoder=Sample(top_p=2.0))", "top_p=2.0 must be above 0 and at most 1"),
    (BASE, "Experiment(task, model, train, 1, 2)", ".py:14: TypeError: "),
    (BASE, "task", "base must be an Experiment, not Reverse"),
    (BASE, "Experiment(task, Language(width=8, heads=2, layers=1), train)", "Language"),
    (BASE, "Experiment(task, AssociativeMemory(embedding=1e300), train)", "model.embedding=1e+300 must be"),
    (BASE, "Experiment(task, Seq2Seq(layers=10**9), train)", "model.layers=1000000000 must be at least 1, and at most"),
    (VARY, "3", "vary=3 must be a Variation"),
    (VARY, "{'model.width': 4}", "must be a Variation"),
    (VARY, "Variation({})", "vary: expected at least one variant, got none"),
    (VARY, "Variation({'a': 3})", "vary: "),
    (VARY, "over('model.widht', a=8, b=16)", "model.widht: Transformer has no field 'widht'; nearest: 'width'"),
    (VARY, "over('modle.width', a=8)", "modle: Experiment has no field 'modle'; nearest: 'model'"),
    (VARY, "over('', a=8)", "''"),
    (VARY, "over('model.heads', a=3, b=2)", "model.heads=3 must divide model.width=8"),
    (VARY, "over('model.heads', a=2, b=2)", "'a' and 'b' are the same experiment"),
    (VARY, "over('model.heads', **{'../up': 1})", "name='../up' cannot name a folder"),
    (VARY, "over('model.heads', **{'': 1})", "name='' cannot name a folder"),
    (VARY, "over('model.heads', **{'a/b': 1})", "name='a/b' cannot name a folder"),
    (VARY, "over('model.heads', **{'.hidden': 1})", "name='.hidden' cannot name a folder"),
    (VARY, "over('model.heads', **{'a\\nb': 1})", "cannot name a folder"),
    (VARY, "over('model.heads', **{'é' * 99: 1})", "cannot name a folder"),
    (VARY, "over('model.heads', one=1, One=2)", "the names 'one' and 'One' would be the same folder"),
    (VARY, "over('model.heads', a=1) | over('model.width', a=8)", "vary: the name 'a' is given twice"),
    (VARY, "product(over('model.heads', a=1), over('model.heads', b=2))", "model.heads is set by two"),
    (VARY, "zipped(over('model.heads', a=1, b=2), over('model.width', c=8))", "vary"),
    ('"which?"', "3", "question=3 must be text"),
    ('"which?"', '"which?", name="../../up"', "name='../../up' cannot name a folder"),
    ('"which?"', '"which?", name="a\\x00b"', "cannot name a folder"),
    ('"which?"', '"which?", name=3', "name=3 must be text"),
    ('"which?"', '"which?", match="size"', "match='size' must be one of parameters, flops, state"),
    ('"which?"', '"which?", budget=3', "budget=3 must be one of steps, flops, seconds"),
    ('"which?"', '"which?", margin=0', "margin=0 must be above 0"),
    ('"which?"', '"which?", margin=float("nan")', "margin=nan must be"),
    ('"which?"', '"which?", margin="0.1"', "margin='0.1' must be a number"),
    ('"which?"', '"which?", published={"sofmax": 0.5}', "published: no variant 'sofmax'; nearest: 'softmax'"),
    ('"which?"', '"which?", published={"softmax": "0.5"}', "published: "),
    ('"which?"', '"which?", published=0.5', "published=0.5 must be"),
    ('"which?"', '"which?", bands={"sofmax": (0.5, None)}', "bands: no variant 'sofmax'; nearest: 'softmax'"),
    ('"which?"', '"which?", bands={"softmax": 0.5}', "bands: softmax=0.5 must be (least, most)"),
    ('"which?"', '"which?", bands={"softmax": (0.5, 0.1)}', "bands: softmax=(0.5, 0.1) must be (least, most)"),
    ('{"train.steps": 2}', '{"train.step": 2}', "train.step: Train has no field 'step'; nearest: 'steps'"),
    ('{"train.steps": 2}', '{"train.steps": 0}', "train.steps=0 must be at least 1"),
    ('{"train.steps": 2}', "2", "quick=2 must be"),
    ('{"train.steps": 2}', "{2: 2}", "quick={2: 2} must be"),
]
