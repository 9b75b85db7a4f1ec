"""Decoding: draws, batches of translations, and a context that slides."""

import pytest
import torch
from torch import nn

from regard.nn.decoding import Sampling, model_in_evaluation_mode, translate
from regard.text import tokenizers
from tests.support.own_models import TEXTS, pair


def test_draws_have_the_models_shares() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0, 0.0]]).expand(40_000, -1)
    for choice, allowed in (
        (Sampling(do_sample=True, seed=1), [0, 1, 2, 3]),
        (Sampling(do_sample=True, seed=1, top_k=2, temperature=2.0), [1, 2]),
        (Sampling(do_sample=True, seed=1, top_p=0.8), [1, 2]),  # 0.64 alone is less, 0.88 together is enough
    ):
        drawn = choice.chooser()(logits).bincount(minlength=4) / 40_000
        mask = torch.tensor([n in allowed for n in range(4)])
        exact = (logits[0] / choice.temperature).masked_fill(~mask, -torch.inf).softmax(0)
        torch.testing.assert_close(drawn, exact, rtol=0, atol=0.01)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_a_batch_is_translated_as_each_alone() -> None:
    """Greedy, against full passes; finished rows wait for the others."""
    model = pair(initial=0.4)
    end, start = model.tokenizer.eos_token_id, model.tokenizer.bos_token_id
    batch = tokenizers.batch(model.tokenizer, TEXTS)
    got = translate(model.model, batch.ids, batch.mask, max_new_tokens=9, end=end)
    for row, text in enumerate(TEXTS):
        source, ids = torch.tensor([model.tokenizer(text)["input_ids"]]), [start]
        while len(ids) < 10 and ids[-1] != end:
            with torch.no_grad():
                ids.append(int(model.model(source, torch.tensor([ids])).logits[0, -1].argmax()))
        assert got[row] == ids[1:]
        made = model.generate(text, max_new_tokens=9)
        assert list(made.ids) == ids
        assert made.trace.decoder.cross[0].shape == (3, len(ids), source.shape[1])
        assert made.ended == ("end" if ids[-1] == end else "length")
        likely = ids[2]  # as if this were the end: it is written, and nothing after it
        assert translate(model.model, source, max_new_tokens=9, end=likely)[0] == ids[1 : ids.index(likely, 1) + 1]


@pytest.mark.parametrize("fails", [False, True])
def test_each_part_has_its_own_mode_again(fails: bool) -> None:
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout(), nn.Linear(2, 2)), nn.Dropout())
    model[1].eval()  # as somebody trains a part of a model alone
    before = [module.training for module in model.modules()]
    assert len(set(before)) == 2
    with pytest.raises(KeyError) if fails else model_in_evaluation_mode(model), model_in_evaluation_mode(model):
        assert not any(module.training for module in model.modules())
        if fails:
            raise KeyError
    assert [module.training for module in model.modules()] == before
