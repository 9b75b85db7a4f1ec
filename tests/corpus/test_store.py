import inspect

from regard.corpus.store import Store
from regard.questions.find.answer import find
from regard.questions.senses.answer import find_senses
from regard.questions.shift.answer import find_shift


def test_the_methods_take_what_the_functions_take_with_the_same_defaults() -> None:
    for method, function in ((Store.find, find), (Store.senses, find_senses), (Store.shift, find_shift)):
        mine, theirs = (list(inspect.signature(each).parameters.values())[1:] for each in (method, function))
        assert [(each.name, each.default, each.kind) for each in mine] == [
            (each.name, each.default, each.kind) for each in theirs
        ]


def test_a_store_answers_every_question(bank_store: Store) -> None:
    assert bank_store.find("bank").total == 16
    assert len(bank_store.senses("bank", 2, checked=0).senses) == 2
    assert bank_store.shift("bank", column="kind").change.p <= 0.01
    assert bank_store.sql("SELECT count(*) AS n FROM rows WHERE word = 'bank'").to_pylist() == [{"n": 16}]
