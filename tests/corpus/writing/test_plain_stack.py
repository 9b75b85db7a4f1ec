"""A model's stack alone gives the states that a watched pass gives, and windows to compare on have many lengths."""

from pathlib import Path

import pytest
import torch

import regard
from regard.corpus.settings import Settings
from regard.corpus.writing.cut_windows import window_size
from regard.corpus.writing.plain_stack import PlainStack, has_segments, states_by_window, windows_to_compare_on
from regard.errors import RegardError
from regard.models.model import Model
from regard.models.states import read_states
from tests.support import make_tiny, own_models

FAMILIES = [("bert", True, False), ("distilbert", False, False), ("gpt2", True, True)]


@pytest.mark.parametrize(("kind", "segments", "masked"), FAMILIES)
def test_the_states_of_a_watched_pass(kind: str, segments: bool, masked: bool, tmp_path: Path, minilm: Model) -> None:
    make_tiny(tmp_path / kind, minilm, kind)
    model = regard.load(tmp_path / kind, device="cpu")
    size = window_size(model, Settings(window=31))
    windows = windows_to_compare_on(model, size, "--option")
    lengths = [len(each.ids) for each in windows]
    assert (max(lengths), len(set(lengths)) >= 4) == (31, True)
    assert has_segments(model, windows) == segments
    stack = PlainStack(model, [0, 1], causal=size.causal, option="--option").eval()
    assert stack.masked == masked
    for number, expected in states_by_window(read_states(model, windows, [0, 1])).items():
        with torch.no_grad():
            given = {"input_ids": torch.tensor([windows[number].ids])}
            given |= {"token_type_ids": torch.tensor([windows[number].segments])} if segments else {}
            found = torch.cat(stack(**given))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_a_model_of_our_own_is_refused() -> None:
    with pytest.raises(RegardError, match="--option: .* needs a model of transformers: leave the option out"):
        PlainStack(own_models.opened("bert"), [0], causal=False, option="--option")
