from attnlab.data.text.example import Example, shuffled


def test_shuffled_is_a_fixed_permutation_and_not_the_alphabets():
    examples = [Example(chr(97 + n), ((str(n),),)) for n in range(26)]
    once, again = shuffled(examples), shuffled(iter(examples))
    assert once == again
    assert sorted(once) == examples
    assert once != examples
