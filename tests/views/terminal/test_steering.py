"""Two texts side by side."""

import io

from rich.console import Console

import regard
from regard.views.terminal.steering import show_steering
from tests.support import own_models


def test_both_texts_are_whole() -> None:
    model = own_models.opened("gpt")
    plain = model.generate("A man is", new_tokens=5)
    vector = 9 * model.trace("She takes").contextual[0]
    steered = model.generate("A man is", new_tokens=5, interventions=[regard.steer(vector, layer=1)])
    out = io.StringIO()
    show_steering(plain, steered, "how", Console(file=out, width=200))
    assert plain.text in out.getvalue()
    assert steered.text in out.getvalue()
    assert "both texts are the same" not in out.getvalue()
