"""`regard why`: which tokens and heads moved a word, by weight, by contribution, and by cutting each of them."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from regard.cli.options import FollowedWord, ModelName, Texts, Top
from regard.errors import RegardError


def _retrace(model: Any, text: str, cuts: Sequence[Any]) -> Any:
    return model.trace(text, without=cuts)


def why(texts: Texts = None, word: FollowedWord = None, model: ModelName = None, top: Top = 10) -> None:
    """Rank the tokens and heads behind a word, and check the ranking by cutting each of them."""
    from regard.tokens import check_text

    if not texts:
        raise RegardError("no text given: regard why TEXT [TEXT ...] --word W")
    if word is None or not word.strip():
        raise RegardError("--word is needed: a word of the text")
    if top < 1:
        raise RegardError(f"--top: given {top}, needs 1 or more")
    for number, text in enumerate(texts, 1):
        check_text(text, f"text {number}" if len(texts) > 1 else "text")

    # torch and transformers are imported only now: help and bad input do not wait for them
    from rich.console import Console

    from regard.explain.why import why as explain
    from regard.models import without
    from regard.models.load import load
    from regard.views.why import show_why

    found, statuses = [], []
    with Console(stderr=True, highlight=False).status("loading the model, tracing and cutting …"):
        opened = load(model)
        for number, text in enumerate(texts, 1):
            trace = opened.trace(text)
            statuses.append(trace.status)
            words = trace.word(word)
            for nth, each in enumerate(words):
                label = f"{number}{chr(97 + nth) if len(words) > 1 else ''}"
                found.append((label, explain(trace, each, partial(_retrace, opened, text), without)))
    show_why(found, statuses, top, Console(highlight=False))
