from pathlib import Path

import numpy as np
import pytest

from attnlab.data.io.files import DataError
from attnlab.data.text import documents, sentences
from attnlab.data.text.example import Example
from attnlab.lab.study.load import load_study
from attnlab.tasks.text.documents import DocumentPairs, Documents


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def test_sentences_are_sorted_into_parts_and_classes():
    parts = {
        "train": [Example("a b", ("yes",)), Example("c", ("no",)), Example("é", ("yes",))],
        "valid": [Example("d", ("no",))],
    }
    assert documents.pools(parts) == {
        "train": {"no": [b"c"], "yes": [b"a b", "é".encode()]},
        "valid": {"no": [b"d"], "yes": []},
    }
    parts["valid"].append(Example("e", ("perhaps",)))
    with pytest.raises(DataError, match="valid part has a sentence of class 'perhaps', which does not occur in train"):
        documents.pools(parts)


def test_a_document_joins_different_sentences_up_to_its_length():
    sentences = [bytes([65 + n]) * (n + 1) for n in range(20)]
    for seed in range(5):
        one, other = documents.written(generator(seed), sentences, [40, 7])
        assert (len(one), len(other)) == (40, 7)
        # All parts but the last, which may be cut, are whole sentences. No sentence is in both documents.
        whole = [*one.split(b" ")[:-1], *other.split(b" ")[:-1]]
        assert set(whole) <= set(sentences)
        assert len(set(whole)) == len(whole)
        assert not set(one) & set(other) - {32}
    assert len({next(documents.written(generator(seed), sentences, [40])) for seed in range(5)}) == 5


def test_bytes_are_ids_and_padding_is_zero():
    ids, keep = documents.padded([b"ab", "é".encode() + b"\x00\xff"], 5)
    np.testing.assert_array_equal(ids, [[98, 99, 0, 0, 0], [0xC3 + 1, 0xA9 + 1, 1, 256, 0]])
    np.testing.assert_array_equal(keep, [[1, 1, 0, 0, 0], [1, 1, 1, 1, 0]])
    assert ids.dtype == np.int32
    assert ids.max() < documents.BYTES


def test_too_few_sentences_are_refused():
    pools = {"train": {"yes": [b"abc", b"de"], "no": [b"a"]}}
    documents.check({"train": {"yes": pools["train"]["yes"]}}, 7, "file")
    with pytest.raises(DataError, match="file: the train part has 7 bytes of sentences of class 'yes', but 8 are"):
        documents.check(pools, 8, "file")


def likelihoods(parts, documents):
    """Returns the log-likelihood of each document under each class, by naive Bayes on the words of the train part."""
    counts = {}
    for example in parts["train"]:
        for word in example.source.split():
            counts.setdefault(example.targets[0], {}).setdefault(word, 0)
            counts[example.targets[0]][word] += 1
    known = sorted({word for each in counts.values() for word in each})
    shares = {
        name: {w: (each.get(w, 0) + 1) / (sum(each.values()) + len(known)) for w in known}
        for name, each in counts.items()
    }
    return [[sum(np.log(shares[name].get(w, 1e-3)) for w in d.split()) for name in sorted(shares)] for d in documents]


def test_long_documents_determine_the_class_and_short_ones_do_not():
    parts = documents.drawn(0, 2, 0.3)
    assert {part: len(examples) for part, examples in parts.items()} == dict.fromkeys(("train", "valid", "test"), 800)
    pool = documents.pools(parts)["test"]
    right = {}
    for length in (30, 1000):
        made = [
            (n, next(documents.written(generator(7 * n + k), sentences, [length])))
            for n, sentences in enumerate(pool.values())
            for k in range(150)
        ]
        found = np.argmax(likelihoods(parts, [text.decode() for _, text in made]), axis=1)
        right[length] = np.mean(found == [n for n, _ in made])
    assert right[30] < 0.8  # Φ(.3·√3) = .70
    assert right[1000] > 0.95  # Φ(.3·√85) = .997 if the shares are known exactly


def test_word_counts_predict_synthetic_texts_and_pairs():
    """Computes the baselines that experiments/long_range_all.py quotes next to the accuracy of its mechanisms."""
    asked = load_study(Path(__file__).parents[3] / "experiments" / "long_range_all.py").variants()
    text, pairs = tasks = [asked[f"{name}-softmax"].task for name in ("text", "pairs")]
    right = {}
    for task in tasks:
        assert isinstance(task, Documents)
        batch = task.load().draw(generator(), 1000, "test")
        texts = ["".join(map(chr, ids[ids > 0] - 1)) for ids in batch["source"].reshape(-1, task.longest)]
        found = np.argmax(likelihoods(documents.drawn(0, 2, task.tilt), texts), axis=1)
        told = found if task is text else found[::2] == found[1::2]
        right[task] = np.mean(told == batch["label"])
    print(f"naive Bayes: {right[text]:.3f}; of pairs: {right[pairs]:.3f}")
    assert 0.84 < right[text] < 0.9
    assert 0.97 < right[pairs] < 1


def test_synthetic_sentences_are_a_function_of_the_seed_and_parts_differ():
    one, same, other = (documents.drawn(seed, 2, 0.3) for seed in (3, 3, 4))
    assert one == same
    assert one["train"] != other["train"]
    assert not {example.source for example in one["train"]} & {example.source for example in one["test"]}


def test_word_counts_predict_film_reviews(published):
    """Computes the baseline that experiments/long_range.py quotes next to the accuracy of its mechanisms."""
    published("text_classification")
    parts = sentences.sst2()
    pool = documents.pools(parts)["test"]
    random = generator()
    made = [
        (n, next(documents.written(random, told, [random.integers(128, 256, endpoint=True)])))
        for n, told in enumerate(pool.values())
        for _ in range(500)
    ]
    found = np.argmax(likelihoods(parts, [text.decode(errors="ignore") for _, text in made]), axis=1)
    right = np.mean(found == [n for n, _ in made])
    print(f"naive Bayes: {right:.3f}")
    assert 0.85 < right < 0.95


def test_word_counts_predict_pairs_of_question_documents(published):
    """Computes the baseline for pairs. Naive Bayes classifies both documents, and the two classes are compared."""
    published("text_classification")
    problem = DocumentPairs(text="trec", shortest=64, longest=128, valid_examples=1, test_examples=1).load()
    batch = problem.draw(generator(), 1000, "test")
    texts = ["".join(map(chr, ids[ids > 0] - 1)) for ids in batch["source"].reshape(2000, 128)]
    parts = {"train": [each for each in sentences.trec()["train"] if each.targets[0] != "ABBR"]}
    found = np.argmax(likelihoods(parts, texts), axis=1).reshape(1000, 2)
    right = np.mean((found[:, 0] == found[:, 1]) == batch["label"])
    print(f"naive Bayes of pairs: {right:.3f}")
    assert 0.88 < right < 0.94
