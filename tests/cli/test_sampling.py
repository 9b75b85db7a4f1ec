"""How a model writes on: what is refused, and what reaches `Model.generate`."""

from types import SimpleNamespace
from typing import Any

import pytest

from regard.cli.sampling import Sampling
from regard.errors import RegardError


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        (Sampling(max_new_tokens=0), "--max-new-tokens: given 0, needs 1 or more"),
        (Sampling(seed=3), "--seed has no effect on the likeliest token"),
        (Sampling(temperature=-1.0), "temperature: given -1.0, needs a number above 0"),
        (Sampling(top_k=-1), "top_k: given -1, needs"),
    ],
)
def test_what_is_refused(chosen: Sampling, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        chosen.check()


@pytest.mark.parametrize(
    ("chosen", "options"),
    [
        (Sampling(), {}),
        (Sampling(temperature=0.5), {"do_sample": True, "temperature": 0.5}),
        (Sampling(top_k=7), {"do_sample": True, "temperature": 1.0, "top_k": 7}),
        (Sampling(temperature=2.0, top_k=0, seed=5), {"do_sample": True, "temperature": 2.0, "top_k": 0}),
    ],
)
def test_what_is_drawn(chosen: Sampling, options: dict[str, Any]) -> None:
    chosen.check()
    assert chosen.options == options


class Recorder:
    """In the place of a model: keeps what it is asked."""

    def __init__(self, limit: int | None, *, tokenizer: bool = True) -> None:
        self.limit, self.asked = limit, {}
        self.tokenizer = (lambda text, verbose: {"input_ids": text.split()}) if tokenizer else None

    def generate(self, text: str, **options: Any) -> Any:
        if options["max_new_tokens"] > 100:
            raise RegardError("max_new_tokens: given too many")
        self.asked = {"text": text, **options}
        return SimpleNamespace(text=text)


@pytest.mark.parametrize(
    ("limit", "tokenizer", "given", "asked"),
    [(None, True, None, 60), (61, True, None, 58), (3, True, None, 1), (7, False, None, 60), (7, True, 5, 5)],
)
def test_as_many_as_fit(limit: int | None, tokenizer: bool, given: int | None, asked: int) -> None:
    model: Any = Recorder(limit, tokenizer=tokenizer)
    assert Sampling(given, top_k=2, seed=11).write(model, "one two three").text == "one two three"
    expected = {"max_new_tokens": asked, "seed": 11, "do_sample": True, "temperature": 1.0, "top_k": 2}
    assert model.asked == {"text": "one two three", "interventions": ()} | expected


def test_a_refusal_names_the_option() -> None:
    with pytest.raises(RegardError, match="^--max-new-tokens: given too many$"):
        Sampling(101).write(Recorder(None), "one")  # type: ignore[arg-type]
