from dataclasses import astuple
from typing import Any

from regard.display.contexts import contexts_of, length_of


def test_a_context_ends_where_a_word_does_and_says_that_the_text_goes_on(bank_store: Any) -> None:
    found = bank_store.senses("bank", 1, context=12)
    contexts = {
        name: "|".join(astuple(each))
        for name, each in zip(found.found.document, contexts_of(found.found, found.context), strict=True)
    }
    assert contexts["r0"] == "… the muddy |bank| of the …"  # "The boat drifted towards the muddy bank of the river."
    assert contexts["r5"] == "… up on the |bank| of the …"
    assert contexts["m1"] == "The |bank| raised its …"
    found = bank_store.senses("bank", 1, context=0)
    assert {"|".join(astuple(each)) for each in contexts_of(found.found, found.context)} == {"… |bank| …"}
    assert length_of(contexts_of(found.found, found.context)) == 2 * sum(
        len(f"{each.left}{each.right}") for each in contexts_of(found.found, 0)
    )
