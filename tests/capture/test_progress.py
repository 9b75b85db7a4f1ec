"""Progress is each layer's share of the pass, and hooks are gone after it."""

import torch

from regard.capture.progress import report_layers_of_pass
from tests.support.attention_outputs import make_model


def test_each_layer_reports_its_share() -> None:
    model, shares = make_model("bert", num_hidden_layers=4), []
    with torch.no_grad(), report_layers_of_pass(model, shares.append):
        model(torch.tensor([[5, 17, 31]]))
    assert shares == [0.25] * 4
    with torch.no_grad():
        model(torch.tensor([[5, 17, 31]]))
    assert len(shares) == 4


def test_nothing_where_layers_are_not_found() -> None:
    model, shares = make_model("albert", num_hidden_layers=3), []
    with torch.no_grad(), report_layers_of_pass(model, shares.append):
        model(torch.tensor([[5, 17, 31]]))
    assert shares == []
