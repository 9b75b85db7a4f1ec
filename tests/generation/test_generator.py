"""What every generator has in common: requests refused before a token is written, and one answer a prompt."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import regard
from regard.capture.interventions.activations import Patch
from regard.capture.interventions.resolve import Intervention
from regard.errors import RegardError
from regard.generation.generator import FULL_PASSES, continued, decoder_start, written_part
from regard.models.model import Model
from regard.nn.config import TransformerConfig
from regard.nn.transformer import Transformer
from regard.text.tokens import encode, encoded_ids
from regard.trace.trace import Trace
from tests.support.generation import DECODERS, IDS, NEW, PAIRS, SMALL, close, opened, tiny
from tests.support.own_models import opened as opened_own
from tests.support.own_models import pair

TEXT = "A man is fishing on a river"


def test_several_prompts_are_each_as_if_alone() -> None:
    model = opened_own("gpt")
    together = model.generate([TEXT, "She takes"], max_new_tokens=3)
    alone = [model.generate(each, max_new_tokens=3) for each in (TEXT, "She takes")]
    assert [each.ids for each in together] == [each.ids for each in alone]
    assert [each.start for each in together] == [7, 2]
    assert [len(each.ids) - each.start for each in together] == [3, 3]
    assert {each.ended for each in together} == {"length"}
    with pytest.raises(RegardError, match="prompt 1 has 7 tokens and 25 new ones"):
        model.generate([TEXT, "She takes"], max_new_tokens=25)


def test_of_a_pair_the_start_token_takes_the_room() -> None:
    with pytest.raises(RegardError, match="the start token and 17 new ones are more than the 17 that"):
        pair(length=17, positions="learned").generate("A bank", max_new_tokens=17)


HEAD = regard.ablate(regard.head(1, 2))
EDGES = [
    regard.ablate(regard.edge(4, 1)),  # in the prompt
    regard.ablate(regard.edge(11, 3, layers=0)),  # from a token written later to one of the prompt
    regard.ablate(regard.edge(17, 16, heads=[0, 5])),  # between two written ones: within every window
]
EVERYTHING = [HEAD, *EDGES]
CROSSING = [
    regard.ablate(regard.head(1, 3, part="encoder")),
    regard.ablate(regard.head(2, 0, part="cross")),
    regard.ablate(regard.edge(5, 2, part="encoder")),
    regard.ablate(regard.edge(6, 1, part="decoder", layers=[0, 2])),
    regard.ablate(regard.edge(9, 4, part="cross", heads=1)),
]


def same(ours: Trace, whole: Trace) -> None:
    """Within the tolerances of generation without ablations."""
    for kind in ("attention", "cross"):
        for mine, theirs in zip(getattr(ours, kind), getattr(whole, kind), strict=True):
            close(mine.dense(), theirs.dense(), 1e-5)
    for mine, theirs in zip(ours.hidden_states, whole.hidden_states, strict=True):
        close(mine, theirs, 1e-4)
    close(ours.last_hidden_state, whole.last_hidden_state, 1e-4)
    if ours.logits is not None:
        close(ours.logits, whole.logits, 1e-4)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_generation_is_ablated_as_one_pass_is(kind: str) -> None:
    model = opened(kind)
    made = model.generate(ids=IDS, max_new_tokens=NEW, min_new_tokens=NEW, interventions=EVERYTHING)
    same(made.trace, model.trace(ids=list(made.ids), interventions=EVERYTHING))
    assert not made.trace.attention[0][:, 4, 1].any()
    assert not made.trace.attention[0][:, 11, 3].any()
    assert not made.trace.attention[1][[0, 5], 17, 16].any()
    assert made.trace.status.difference < 1e-5
    notes = made.trace.status.notes
    assert set(map(str, EVERYTHING)) < set(notes)
    assert any(note.startswith(FULL_PASSES) for note in notes)
    logits = made.trace.logits[made.start - 1 : -1].clone()
    logits[:, SMALL["eos_token_id"]] = -torch.inf  # by min_new_tokens
    assert tuple(logits.argmax(-1).tolist()) == made.ids[made.start :]


@pytest.mark.parametrize("kind", PAIRS)
def test_an_encoder_decoders_attention_of_all_three_kinds(kind: str) -> None:
    model = opened(kind)
    made = model.generate(ids=IDS, max_new_tokens=NEW, min_new_tokens=NEW, interventions=CROSSING)
    whole = model.trace(ids=IDS, target_ids=list(made.ids), interventions=CROSSING)
    for ours, theirs in ((made.trace.encoder, whole.encoder), (made.trace.decoder, whole.decoder)):
        same(ours, theirs)
    assert not made.trace.decoder.cross[1][1, 9, 4].any()
    assert not made.trace.decoder.attention[2][:, 6, 1].any()
    assert made.trace.decoder.attention[1][:, 6, 1].all()


def test_what_is_written_depends_on_it() -> None:
    model = opened("gpt2")
    plain, ablated = (
        model.generate(ids=IDS, max_new_tokens=1, interventions=each)
        for each in ((), [regard.ablate(regard.head(layer, head)) for layer in (0, 1) for head in range(6)])
    )
    assert plain.ids[-1] != ablated.ids[-1]
    with torch.no_grad():
        last = model.trace(ids=IDS, interventions=[HEAD]).logits[-1]
    assert model.generate(ids=IDS, max_new_tokens=1, interventions=[HEAD]).ids[-1] == int(last.argmax())


def test_a_query_that_loses_every_key() -> None:
    model = opened("llama")
    alone = [regard.ablate(regard.edge(8, key)) for key in range(9)]
    made = model.generate(ids=IDS, max_new_tokens=4, min_new_tokens=4, interventions=alone)
    assert not made.trace.attention[0][:, 8].any()
    same(made.trace, model.trace(ids=list(made.ids), interventions=alone))


def test_words_are_those_of_the_prompt(minilm: Any) -> None:
    tokenizer = minilm.tokenizer
    model = opened("gpt2", tokenizer, vocab_size=tokenizer.vocab_size)
    by_word = [regard.ablate(regard.edge("bank", "river"))]
    made = model.generate("A man on a river bank", max_new_tokens=3, interventions=by_word)
    by_number = [regard.ablate(regard.edge(6, 5))]
    same(made.trace, model.generate("A man on a river bank", max_new_tokens=3, interventions=by_number).trace)
    assert not made.trace.attention[0][:, 6, 5].any()
    assert made.trace.status.notes[0] == str(by_word[0])
    one = [regard.ablate(regard.edge(("bank", 0), ("river", 0)))]
    same(made.trace, model.generate("A man on a river bank", max_new_tokens=3, interventions=one).trace)
    with pytest.raises(regard.RegardError, match="word 'money' is not in the text"):
        model.generate("A bank", interventions=[regard.ablate(regard.edge("bank", "money"))])


def test_a_token_that_was_never_written_is_named() -> None:
    model = opened("llama")
    model.model.generation_config.eos_token_id = model.generate(ids=IDS, max_new_tokens=1).ids[-1]
    made = model.generate(ids=IDS, max_new_tokens=NEW, interventions=EDGES[1:2])
    assert len(made.ids) == 8
    assert made.trace.status.notes[-1].endswith("ablated: the edge from 11 to 3 in layers 0.")


REFUSED = [
    ("llama", [regard.ablate(regard.head(2, 0))], "layer 2 is out of range, tiny-llama has layers 0 to 1"),
    ("llama", [regard.ablate(regard.head(1, 6))], "head 6 is out of range, tiny-llama has heads 0 to 5"),
    ("llama", [regard.ablate(regard.edge(20, 3))], "token 20 is out of range, the text has tokens 0 to 19"),
    ("llama", [regard.head(1, 2)], r"expected regard.ablate\(regard.head"),
    ("llama", [regard.ablate(regard.head(1, 2, part="cross"))], "not an encoder-decoder: leave out part='cross'"),
    ("marian", [HEAD], "choose the attention"),
    ("marian", [regard.ablate(regard.edge(14, 3, part="cross"))], "token 14 is out of range"),
    ("marian", [regard.ablate(regard.head(3, 2, part="decoder"))], "has layers 0 to 2 of the decoder"),
    ("marian", [regard.ablate(regard.edge("la", 3, part="cross"))], "'la' is a word of the target"),
]


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(("kind", "interventions", "says"), REFUSED)
def test_what_is_refused(kind: str, interventions: list[Intervention], says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        opened(kind).generate(ids=IDS, max_new_tokens=NEW, interventions=interventions)


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_a_transformer_of_ours(kind: str) -> None:
    """What it writes is what full ablated passes say, and so is its trace."""
    torch.manual_seed(0)
    sizes = {"vocabulary": 97, "d_model": 24, "heads": 6, "layers": 3, "initial": 0.4}
    if kind == "decoder":
        config = TransformerConfig(length=31, **sizes)
    else:
        config = TransformerConfig.translator(start=1, d_hidden=37, **sizes)
    model = regard.load(Transformer(config).eval())
    wanted = EVERYTHING if kind == "decoder" else CROSSING
    made = model.generate(ids=IDS, max_new_tokens=NEW, interventions=wanted)
    plain = model.generate(ids=IDS, max_new_tokens=NEW)
    assert made.ids != plain.ids
    sides = [made.trace] if kind == "decoder" else [made.trace.encoder, made.trace.decoder]
    again = model.trace(ids=list(made.ids), interventions=wanted) if kind == "decoder" else model.trace(
        ids=IDS, target_ids=list(made.ids), interventions=wanted
    )  # fmt: skip
    for ours, whole in zip(sides, [again] if kind == "decoder" else [again.encoder, again.decoder], strict=True):
        same(ours, whole)
    logits = sides[-1].logits
    chosen = logits[made.start - 1 : -1].argmax(-1).tolist()  # greedy: each token is what its row says
    assert tuple(chosen) == made.ids[made.start :]
    early = model.generate(ids=IDS, max_new_tokens=2, interventions=[regard.ablate(regard.edge(1, 1, part=None if kind == "decoder" else "decoder"))])  # fmt: skip  # noqa: E501
    assert len(early.ids) == made.start + 2
    with pytest.raises(regard.RegardError, match="head 6 is out of range, transformer has heads 0 to 5"):
        part = None if kind == "decoder" else "decoder"
        model.generate(ids=IDS, max_new_tokens=2, interventions=[regard.ablate(regard.head(0, 6, part=part))])


def test_the_model_comes_back_whole() -> None:
    model = opened("llama")
    before = model.generate(ids=IDS, max_new_tokens=3).ids
    model.generate(ids=IDS, max_new_tokens=3, interventions=[HEAD])
    with pytest.raises(regard.RegardError, match="out of range"):
        model.generate(ids=IDS, max_new_tokens=3, interventions=[regard.ablate(regard.head(7, 0))])
    assert "forward" not in vars(model.model)
    assert model.generate(ids=IDS, max_new_tokens=3).ids == before
    assert tiny("llama").config._attn_implementation == model.model.config._attn_implementation


def given(model: Model, **target: list[int]) -> list[Intervention]:
    """Patches of places in the prompt, from another text, and a push to all tokens."""
    part = {"part": "encoder"} if target else {}
    other = {"target_ids": [4, 8, 15]} if target else {}
    source = model.trace(ids=list(reversed(IDS)), **other)
    whats = ("hidden_states", "head_outputs", "values", "feed_forward")
    found: list[Intervention] = [
        regard.patch(what, layer=n % 2, at=[1, 4], source=source, **part) for n, what in enumerate(whats)
    ]
    found.append(regard.patch("values", layer=0, source=source, head=1, **part))
    if target:
        found.append(regard.patch("values", layer=2, at=3, source=source, part="cross"))
        found.append(regard.patch("hidden_states", layer=2, at=5, source="zero", part="decoder"))
        found.append(regard.steer(torch.ones(24), layer=1, part="decoder"))
    else:
        width = source.last_hidden_state.shape[1]
        found.append(regard.steer(torch.arange(width) / width, layer="input"))
        found.append(regard.steer(torch.arange(width) / width, layer=1, at=len(IDS) + 3))  # a token that is written
    return found


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_generation_is_patched_and_steered_as_one_pass_is(kind: str) -> None:
    model = opened(kind)
    for interventions in ([each] for each in given(model)):
        written = model.generate(ids=IDS, max_new_tokens=NEW, interventions=interventions)
        assert isinstance(written.trace, Trace)
        if isinstance(interventions[0], Patch) and interventions[0].at is None:  # of the prompt, then
            interventions = [replace(interventions[0], at=tuple(range(len(IDS))))]
        whole = model.trace(ids=written.ids, interventions=interventions)
        same(written.trace, whole)
        before = model.trace(ids=written.ids).last_hidden_state
        assert not torch.allclose(written.trace.last_hidden_state, before, atol=1e-3)
        assert str(interventions[0])[:30] in " ".join(written.trace.status.notes)


def test_an_encoder_decoder_writes_patched_and_steered() -> None:
    model = opened("marian")
    for intervention in given(model, target=IDS):
        written = model.generate(ids=IDS, max_new_tokens=NEW, interventions=[intervention])
        if isinstance(intervention, Patch) and intervention.at is None:
            intervention = replace(intervention, at=tuple(range(len(IDS))))
        whole = model.trace(ids=IDS, target_ids=written.ids, interventions=[intervention])
        same(written.trace.decoder, whole.decoder)
        same(written.trace.encoder, whole.encoder)


def test_of_a_patch_only_tokens_that_are_written_are_patched() -> None:
    source = opened("gpt2").trace(ids=IDS)
    change = regard.patch("values", layer=0, at=[4, 9], source=source, source_at=[1, 2])
    part = written_part(change, 8)
    assert isinstance(part, Patch)
    assert (part.at, part.source_at) == ((4,), (1,))
    assert written_part(change, 10) is change
    assert written_part(change, 4) is None
    uneven = regard.patch("values", layer=0, at=[4, 9], source=source, source_at=["5"])
    with pytest.raises(regard.RegardError, match="pass as many tokens in source_at="):
        written_part(uneven, 8)


def test_what_cannot_be_patched_while_text_is_written() -> None:
    model, pair = opened("gpt2"), opened("marian")
    source, both = model.trace(ids=IDS), pair.trace(ids=IDS, target_ids=[1, 2])
    for intervention, says in (
        (regard.patch("weights", layer=0, at=1, source=source), "rows of weights cannot be patched while text is"),
        (regard.patch("values", layer=0, source=model.trace(ids=[1, 2])), "the prompt has 7 tokens and the source 2"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            model.generate(ids=IDS, interventions=[intervention])
    for intervention, says in (
        (regard.patch("values", layer=0, source=both, part="decoder"), "all positions are of the target"),
        (regard.steer(torch.ones(24), layer=0, at="1", part="decoder"), "'1' is a word of the target"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            pair.generate(ids=IDS, interventions=[intervention])
    with pytest.raises(regard.RegardError, match="at: token 18 is out of range"):
        model.generate(ids=IDS, max_new_tokens=2, interventions=[regard.steer(torch.ones(24), layer=0, at=18)])


@pytest.fixture(scope="module")
def by_bytes() -> Any:
    """A tokenizer with a token for each byte."""
    vocabulary = {letter: n for n, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.add_special_tokens({"eos_token": "<end>"})
    return fast


def test_tokens_that_share_a_character(by_bytes) -> None:
    more = by_bytes("é 🙂x")["input_ids"]
    grown = continued(by_bytes, encode(by_bytes, "ab"), [*more, by_bytes.eos_token_id])
    assert grown.text == "abé 🙂x"
    spans = [(t.start, t.end) for t in grown.tokens]
    assert spans == [(0, 1), (1, 2), (2, 3), (2, 3), (3, 4), *[(4, 5)] * 4, (5, 6), (6, 6)]
    assert grown.tokens[-1].special
    assert [t.word for t in grown.tokens[:4]] == [0, 0, 0, 0]
    broken = continued(by_bytes, encode(by_bytes, "a"), more[:1])
    assert broken.text == "a\ufffd"
    assert decoder_start(by_bytes, by_bytes.eos_token_id).text == ""
    assert continued(None, encoded_ids([3]), [5, 8]).text == "3 5 8"
