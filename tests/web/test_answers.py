"""What was found becomes a page of its kind."""

from typing import Any

from regard.web.answers import answer_page, is_answer
from tests.questions.heads.test_panels import made as head_means
from tests.questions.patch.test_panels import made as sweep


def test_each_answer_has_its_page_and_nothing_else_has_one(bank: Any) -> None:
    for found, title in ((sweep(), "Denoising: hidden_states"), (head_means(), "What 6 attention heads do")):
        assert is_answer(found)
        page = answer_page(found)
        assert page is not None
        assert page.title.startswith(title)
    for other in (bank[0], "a text", None, [sweep()]):
        assert not is_answer(other)
        assert answer_page(other) is None
