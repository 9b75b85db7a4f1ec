"""What a model of ours writes, against full passes, and what it refuses."""

from typing import Any

import pytest
import torch

import regard
from regard.nn.config import TransformerConfig
from regard.nn.transformer import Transformer
from regard.text import tokenizers
from tests.support.own_models import TEXTS, opened, pair


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize("kind", ["gpt", "llama", "alibi"])
def test_what_it_writes_is_what_each_full_pass_says(kind: str) -> None:
    model = opened(kind)
    made = model.generate("A man is", max_new_tokens=12)
    ids = [token.id for token in model.trace("A man is").tokens]
    for _ in range(12):
        with torch.no_grad():
            ids.append(int(model.model(torch.tensor([ids])).logits[0, -1].argmax()))
    assert list(made.ids) == ids
    assert (made.start, made.ended) == (3, "length")
    assert made.text.startswith("A man is")
    assert [token.id for token in made.trace.tokens] == ids
    assert made.trace.status.difference < 1e-5
    with torch.no_grad():
        expected = model.model(torch.tensor([ids])).logits[0]
    torch.testing.assert_close(made.trace.logits, expected, rtol=0, atol=1e-5)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_draws_come_from_the_seed() -> None:
    model = opened("llama")
    options = {"do_sample": True, "max_new_tokens": 9, "temperature": 2.0}
    first = model.generate("A man", seed=3, **options)
    assert first.ids == model.generate("A man", seed=3, **options).ids
    assert len({model.generate("A man", seed=seed, **options).ids for seed in range(5)}) > 1
    greedy = model.generate("A man", max_new_tokens=9)
    assert model.generate("A man", do_sample=True, top_k=1, max_new_tokens=9, seed=5).ids == greedy.ids
    assert model.generate("A man", do_sample=True, top_p=1e-9, max_new_tokens=9, seed=5).ids == greedy.ids
    stopped = model.generate("A man", max_new_tokens=9, stop=greedy.new.split()[2])
    assert (stopped.ended, len(stopped.ids)) == ("stop", 2 + 3)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_a_prompt_is_gone_on_with_and_may_end() -> None:
    torch.manual_seed(0)
    tokenizer = tokenizers.words(TEXTS, frame="both")
    sizes = {"vocabulary": len(tokenizer), "d_model": 12, "heads": 3, "layers": 1, "length": 8}
    model = regard.load(Transformer(TransformerConfig(**sizes, output="free", output_bias=True)), tokenizer=tokenizer)
    with torch.no_grad():
        model.model.head.bias[tokenizer.eos_token_id] = 100
    made = model.generate("A man is", max_new_tokens=4)  # [BOS] and three words leave room for four of eight
    begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    assert list(made.ids) == [begin, *tokenizer("A man is", add_special_tokens=False)["input_ids"], end]
    assert (made.new, made.ended, made.start) == ("", "end", 4)


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_new_tokens": 30}, "2 tokens and 30 new ones are more than the 31 .* max_new_tokens can be at most 29"),
        ({"temprature": 1.0}, "no option 'temprature': did you mean 'temperature'"),
        ({"temperature": 2.0}, "temperature has no effect on greedy decoding"),
        ({"do_sample": True, "temperature": 0}, "temperature: got 0, expected a number above 0"),
        ({"do_sample": True, "top_p": 1.5}, "top_p: got 1.5, expected a number above 0, at most 1"),
        ({"do_sample": True, "top_k": True}, "top_k: got True, expected a whole number"),
        ({"do_sample": True, "top_k": -1}, "top_k: got -1, expected a whole number"),
    ],
    ids=str,
)
def test_what_cannot_be_written_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        opened("gpt").generate("A man", **options)
    with pytest.raises(regard.RegardError, match="no decoder with a language head"):
        opened("bert").generate("A man")
    with pytest.raises(regard.RegardError, match="pass a target as well as the text"):
        pair().trace("A man")
