from collections import UserDict
from typing import Any

import pytest
import torch
from torch import nn

from regard.diffusion.prompt import EncodedText, encoded_text, read_prompt
from regard.errors import RegardError
from tests.support.pipelines import LENGTH, clip_tokenizer, t5_tokenizer

TEXT = "a cat on the mat, a river"


class Encoder(nn.Module):
    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return input_ids[..., None].float()


class Pipeline:
    """As pipelines of diffusers encode their texts: the prompt first, then what it is led away from."""

    def __init__(self) -> None:
        self.tokenizer, self.tokenizer_3 = clip_tokenizer(), t5_tokenizer()
        self.text_encoder, self.text_encoder_3 = Encoder(), Encoder()

    def encode_prompt(self, prompt: Any, prompt_3: Any = None, negative: str = "") -> tuple[torch.Tensor, torch.Tensor]:
        return self._encode(prompt), self._encode(negative)

    def _encode(self, text: str) -> torch.Tensor:
        both = []
        for tokenizer, encoder in ((self.tokenizer, self.text_encoder), (self.tokenizer_3, self.text_encoder_3)):
            found: UserDict[str, torch.Tensor] = tokenizer(
                text, padding="max_length", max_length=LENGTH, truncation=True, return_tensors="pt"
            )
            both.append(encoder(input_ids=found["input_ids"]))
        return torch.cat(both, 1)


def encoded(text: Any, **given: Any) -> tuple[Pipeline, EncodedText]:
    pipeline = Pipeline()
    with encoded_text(pipeline, lambda: None) as found:
        pipeline.encode_prompt(text, **given)
    assert "encode_prompt" not in vars(pipeline)
    return pipeline, found[0]


def test_words_of_two_encoders_are_one_word_and_padding_is_told_apart() -> None:
    pipeline, found = encoded(TEXT)
    prompt = read_prompt(pipeline, found, (1, 3), 2 * LENGTH)
    names = {word.name: [prompt.tokens[n].text.strip() for n in word.tokens] for word in prompt.words}
    assert names["cat"] == ["cat", "cat"]
    assert list(names) == ["a (1)", "cat", "on", "the", "mat", ",", "a (2)", "river", "<|startoftext|>",
                           "<|endoftext|>", "</s>"]  # fmt: skip
    clip = [key for key in prompt.keys if key < LENGTH]
    assert clip == list(range(12)), "start, ten tokens ('the' is three), end"
    assert sorted([*prompt.keys, *prompt.padding]) == list(range(2 * LENGTH))
    assert all(found.ids[1 if key < LENGTH else 3][key % LENGTH] == token.id
               for key, token in zip(prompt.keys, prompt.tokens, strict=True))  # fmt: skip


def test_rows_with_the_words_are_found_wherever_they_stand() -> None:
    _, found = encoded(TEXT)
    assert found.states is not None
    other = found.states + 1
    assert found.rows(torch.cat([other, found.states, other, found.states])) == [1, 3]
    assert found.rows(other) == []
    assert found.rows(found.states[:, 1:]) == []


def test_a_text_that_the_encoder_cut_says_what_it_did_not_read() -> None:
    pipeline, found = encoded(TEXT + " the river")
    prompt = read_prompt(pipeline, found, (1,), LENGTH)
    assert len(prompt.tokens) == LENGTH
    assert ["'he river'" in note for note in prompt.notes] == [True], "of 'the' one letter"
    assert prompt.padding == []


def test_a_text_that_the_pipeline_changed_is_read_from_its_ids() -> None:
    pipeline, found = encoded("a cat on the mat")
    found.text = "A  CAT on the mat!"
    assert read_prompt(pipeline, found, (3,), LENGTH).text == "a cat on the mat"


@pytest.mark.parametrize(
    ("text", "given", "says"),
    [
        (["a", "b"], {}, "prompt: given 2 texts, needs one at a time"),
        (None, {}, "prompt: given NoneType, needs the text itself"),
        ("a cat", {"prompt_3": "a mat"}, "prompt_3: given 'a mat', needs the same text for every encoder"),
    ],
)
def test_what_is_no_single_text_is_refused(text: Any, given: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        encoded(text, **given)


def test_what_does_not_fit_is_refused() -> None:
    pipeline, found = encoded("a cat")
    with pytest.raises(RegardError, match="13 tokens and the picture looks at 12"):
        read_prompt(pipeline, found, (1,), 12)
    pipeline, found = encoded("")
    with pytest.raises(RegardError, match="the text is empty"):
        read_prompt(pipeline, found, (1,), LENGTH)
    found.text = "a cat"
    found.ids[1][1:3] = [9, 8]
    pipeline.tokenizer.decode = lambda *_, **__: "the cat"
    with pytest.raises(RegardError, match="read other tokens than its tokenizer gives"):
        read_prompt(pipeline, found, (1,), LENGTH)
