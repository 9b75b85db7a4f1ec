"""Of what attention brought, the largest share of another word is found among all tokens, not among those named."""

from regard.explain.causes.layer_updates import layer_updates
from regard.explain.texts.word_updates import word_updates


def test_the_largest_share_of_another_word_is_of_all_tokens(bank) -> None:
    from regard.explain.texts.occurrences import occurrences

    (own,) = occurrences(bank[1:], [(0, bank[1].word("bank"))], ["1"], None, None, 1)
    found = word_updates(bank[1], own, top=1)
    assert [len(step.attention.top) for step in found.updates] == [1] * 6
    tokens = bank[1].tokens
    steps = layer_updates(bank[1], own.as_word(), top=len(tokens))
    assert [each.attention.top[:1] for each in steps] == [each.attention.top for each in found.updates]
    share, layer, token = max(
        (source.share, step.layer, source.token)
        for step in steps
        for source in step.attention.top
        if not tokens[source.token].special and source.token != 11 and tokens[source.token].text.isalpha()
    )
    assert (found.most.share, found.most.layer, found.most.token) == (share, layer, token)
    without = word_updates(bank[1], own, top=1, sinks=[token])
    assert without.most.token != token


def test_a_step_that_has_no_exact_split_has_none(bank) -> None:
    from dataclasses import replace

    from regard.explain.texts.occurrences import occurrences

    (own,) = occurrences(bank[1:], [(0, bank[1].word("bank"))], ["1"], None, None, 1)
    found = word_updates(replace(bank[1], attention_outputs=()), own, top=3)
    assert found.updates is None
    assert found.refused
    assert found.most is None
