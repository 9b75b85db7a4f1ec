from collections import UserDict
from typing import Any

import pytest
import torch
from torch import nn

from regard.diffusion.prompt import EncodedText, encoded_text, read_prompt
from regard.errors import RegardError
from tests.support.pipelines import LENGTH, clip_tokenizer, t5_tokenizer
from tests.support.prompt_heat import heat

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
        (["a", "b"], {}, "prompt: got 2 texts, expected one at a time"),
        (None, {}, "prompt: got NoneType, expected the text"),
        ("a cat", {"prompt_3": "a mat"}, "prompt_3: got 'a mat', expected the same text as prompt"),
    ],
)
def test_what_is_no_single_text_is_refused(text: Any, given: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        encoded(text, **given)


def test_what_does_not_fit_is_refused() -> None:
    pipeline, found = encoded("a cat")
    with pytest.raises(RegardError, match="13 tokens but the image attends to 12"):
        read_prompt(pipeline, found, (1,), 12)
    pipeline, found = encoded("")
    with pytest.raises(RegardError, match="the text is empty"):
        read_prompt(pipeline, found, (1,), LENGTH)
    found.text = "a cat"
    found.ids[1][1:3] = [9, 8]
    pipeline.tokenizer.decode = lambda *_, **__: "the cat"
    with pytest.raises(RegardError, match="read other tokens than its tokenizer gives"):
        read_prompt(pipeline, found, (1,), LENGTH)


def test_a_words_heat_is_the_sum_of_its_tokens_weights() -> None:
    found = heat()
    assert found.grid == (5, 7)
    own = found.of("mat", step=1, layer=1, head=0)
    assert own.shape == (2, 3, 4)
    torch.testing.assert_close(own, found.weights[1][1][:, 0][..., [5, 6]].sum(-1))
    torch.testing.assert_close(found.of("mat", step=-1, layer=0), found.weights[2][0][..., [5, 6]].sum(-1).mean(1))


def test_a_mean_lays_coarse_places_over_the_fine_ones_that_they_cover() -> None:
    found = heat()
    token, by_hand = 2, torch.zeros(2, 5, 7, dtype=torch.float64)
    for step in found.weights:
        for layer in step:
            _, _, rows, columns, _ = layer.shape
            for row in range(5):
                for column in range(7):
                    by_hand[:, row, column] += (
                        layer[:, :, row * rows // 5, column * columns // 7, token].double().mean(1) / 6
                    )
    torch.testing.assert_close(found.of("cat").double(), by_hand, atol=1e-7, rtol=1e-6)
    everything = found.mean(range(len(found.prompt.tokens) + 1))
    torch.testing.assert_close(everything, torch.ones(2, 5, 7))


def test_words_and_places_that_are_not_there_are_named() -> None:
    found, thin = heat(), heat(heads=1)
    assert found.word("a (2)").tokens == (4,)
    assert found.word("</s>").special
    for ask, says in (
        (lambda: found.of("a"), r"word 'a' occurs 2 times: needs one of 'a \(1\)', 'a \(2\)'"),
        (lambda: found.of("dog"), "word 'dog' is not in the text"),
        (lambda: found.of("cat", step=3), "step 3 is out of range: there are steps 0 to 2"),
        (lambda: found.of("cat", layer=2), "layer 2 is out of range"),
        (lambda: found.of("cat", layer=0, head=2), r"head 2 is out of range: layer 0 \(fine\) has heads 0 to 1"),
        (lambda: thin.of("cat", layer=0, head=0), "only the mean of the heads was kept: use heads=True"),
    ):
        with pytest.raises(RegardError, match=says):
            ask()
    torch.testing.assert_close(thin.of("cat", layer=0).shape, found.of("cat", layer=0).shape)
