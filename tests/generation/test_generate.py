"""What a model writes, against transformers' own generation; its trace, against one full eager pass."""

from typing import Any

import pytest
import torch
import transformers

import regard
from regard.attention.kernels import statistics
from regard.explain.causes.contributions import contributions
from regard.generation.generator import ONE_PASS
from regard.models.model import Model
from tests.support.generation import DECODERS, IDS, NEW, PAIRS, SAMPLED, SMALL, close, opened, plain, tiny, whole


@pytest.mark.parametrize(
    ("kind", "options"),
    [(kind, {}) for kind in DECODERS] + [(kind, SAMPLED) for kind in ("gpt2", "llama", "gemma2", "mistral")],
)
def test_rows_are_those_of_one_pass(kind: str, options: dict[str, Any]) -> None:
    model = tiny(kind)
    torch.manual_seed(11)
    expected = plain(model, **{"do_sample": False} | options, min_new_tokens=NEW)
    made = Model(model, None, name=kind).generate(ids=IDS, max_new_tokens=NEW, seed=11, min_new_tokens=NEW, **options)
    assert list(made.ids) == expected
    assert (made.start, made.ended, len(made.trace.tokens)) == (7, "length", 20)
    trace, full = made.trace, whole(model, input_ids=expected)
    assert len(trace.attention) == len(full.attentions)
    for weights, theirs in zip(trace.attention, full.attentions, strict=True):
        assert weights.shape == (6, 20, 20)
        close(weights.dense(), theirs[0], 1e-5)
    for state, theirs in zip(trace.hidden_states[:-1], full.hidden_states[:-1], strict=True):
        close(state, theirs[0], 1e-4)
    close(trace.last_hidden_state, full.hidden_states[-1][0], 1e-4)
    close(trace.logits, full.logits[0], 1e-4)
    assert trace.status.difference < 1e-5
    assert trace.status.rows_compared == 2 * 4
    assert any(note.startswith(ONE_PASS) for note in trace.status.notes)
    assert trace.status.embedding_difference <= 1e-6
    assert trace.position_embeddings is None or kind == "gpt2"


@pytest.mark.parametrize("kind", ["llama", "marian"])
def test_statistics_of_all_that_was_written(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = opened(kind).generate(ids=IDS, max_new_tokens=NEW, statistics=regard.Statistics(top=3, pooled=None))
    maps = [weights for trace in made.trace.sides for weights in (*trace.attention, *trace.cross)]
    right = [weights.dense().double() for weights in maps]
    monkeypatch.setattr(statistics, "compute", None)  # everything is there
    for weights, exact in zip(maps, right, strict=True):
        close(weights.received(), exact.sum(-2).float(), 1e-5)
        close(weights.entropy(), torch.special.entr(exact).sum(-1).float(), 1e-5)
        close(weights.top(3)[0], exact.topk(3).values.float(), 1e-6)


@pytest.mark.parametrize("kind", PAIRS)
def test_an_encoder_decoder_writes_a_target(kind: str) -> None:
    changes = {"num_layers": 3} if kind == "t5" else {}  # transformers' cache has as many layers as T5's encoder
    reader, model = opened(kind, **changes), tiny(kind, **changes)
    made = reader.generate(ids=IDS, max_new_tokens=NEW, min_new_tokens=NEW)
    assert list(made.ids) == plain(model, do_sample=False, min_new_tokens=NEW)
    assert (made.start, len(made.ids)) == (1, 14)
    full, pair = whole(model, input_ids=IDS, decoder_input_ids=list(made.ids)), made.trace
    for ours, theirs in (
        (pair.encoder.attention, full.encoder_attentions),
        (pair.decoder.attention, full.decoder_attentions),
        (pair.decoder.cross, full.cross_attentions),
    ):
        for weights, own in zip(ours, theirs, strict=True):
            close(weights.dense(), own[0], 1e-5)
    for trace, states in ((pair.encoder, full.encoder_hidden_states), (pair.decoder, full.decoder_hidden_states)):
        for state, own in zip(trace.hidden_states[:-1], states[:-1], strict=True):
            close(state, own[0], 1e-4)
        assert trace.status.embedding_difference <= 1e-6
    close(pair.decoder.logits, full.logits[0], 1e-4)
    assert pair.decoder.cross[0].shape == (6, 14, 7)
    assert pair.decoder.cross[0].offset is None
    for trace, part in ((pair.decoder, None), (pair.decoder, "cross"), (pair.encoder, None)):
        assert contributions(trace, 4, 1, part=part).error < 1e-5


def test_prompts_are_written_to_one_by_one() -> None:
    model = opened("llama")
    several = model.generate(ids=[IDS, IDS[:3]], max_new_tokens=5, do_sample=True, seed=3)
    for made, ids in zip(several, (IDS, IDS[:3]), strict=True):
        alone = model.generate(ids=ids, max_new_tokens=5, do_sample=True, seed=3)
        assert made.ids == alone.ids
        assert made.ids[: made.start] == tuple(ids)
        assert torch.equal(made.trace.logits, alone.trace.logits)
    assert several[0].text == " ".join(map(str, several[0].ids))


def test_the_model_and_the_random_numbers_stay_as_they_were() -> None:
    model = opened("gpt2")
    model.model.train()
    config, setting = model.model.generation_config, model.model.config._attn_implementation
    state = torch.get_rng_state()
    model.generate(ids=IDS, max_new_tokens=3, do_sample=True, seed=5)
    with pytest.raises(regard.RegardError, match="sequence_bias"):
        model.generate(ids=IDS, max_new_tokens=3, sequence_bias={})
    assert torch.equal(state, torch.get_rng_state())
    assert "forward" not in vars(model.model)
    assert model.model.generation_config is config
    assert model.model.config._attn_implementation == setting
    assert model.model.training
    model.generate(ids=IDS, max_new_tokens=3, do_sample=True)
    assert not torch.equal(state, torch.get_rng_state())  # without a seed they are drawn as they come


def test_one_new_token_and_the_last_position() -> None:
    model = opened("gpt2")
    made = model.generate(ids=IDS, max_new_tokens=1)
    assert len(made.trace.tokens) == 8
    close(made.trace.logits, whole(tiny("gpt2"), input_ids=list(made.ids)).logits[0], 1e-5)
    assert len(model.generate(ids=IDS, max_new_tokens=24, min_new_tokens=24).ids) == 31  # all positions there are


def test_the_end_token_and_defaults_of_the_model() -> None:
    model = opened("llama")
    first = model.generate(ids=IDS, max_new_tokens=1).ids[-1]
    model.model.generation_config.eos_token_id = first
    model.model.generation_config.num_beams = 4
    made = model.generate(ids=IDS, max_new_tokens=NEW)
    assert (made.ended, len(made.ids)) == ("end", 8)
    assert len(made.trace.tokens) == 8  # the end token went through the model as well
    assert sum("num_beams=4" in note for note in made.trace.status.notes) == 1


def test_text_and_its_tokens(minilm) -> None:
    tokenizer = minilm.tokenizer
    model = opened("gpt2", tokenizer, vocab_size=tokenizer.vocab_size)
    prompt = "A man fishing on a river bank"
    made = model.generate(prompt, max_new_tokens=NEW)
    inputs = tokenizer(prompt, return_tensors="pt")
    expected = model.model.generate(**inputs, max_new_tokens=NEW, do_sample=False)[0].tolist()
    assert list(made.ids) == expected
    assert made.text == prompt + made.new
    written = tokenizer.decode(expected, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert made.text.casefold() == written
    trace = made.trace
    assert [token.id for token in trace.tokens] == expected
    for token in trace.tokens[made.start :]:
        if not token.special:
            assert made.text[token.start : token.end] == token.text.removeprefix("##")
    assert trace.tokens[made.start - 1].special  # the tokenizer ends a text with [SEP]: so does its prompt
    (bank,) = trace.word("bank")
    assert bank.text == "bank"
    stop = made.new.split()[2][:3]
    stopped = model.generate(prompt, max_new_tokens=NEW, stop=stop)
    assert stopped.ended == "stop"
    assert stop in stopped.new
    assert len(stopped.ids) < len(made.ids)


REFUSED = [
    ({}, "pass either prompt or its ids, got none"),
    ({"prompt": "a", "ids": IDS}, "pass either prompt or its ids, got both"),
    ({"prompt": "a"}, "has no tokenizer"),
    ({"ids": IDS, "max_new_tokens": 0}, "max_new_tokens: got 0, expected a whole number of 1 or more"),
    ({"ids": IDS, "max_new_tokens": True}, "max_new_tokens: got True"),
    ({"ids": IDS, "max_new_tokens": 25}, "7 tokens and 25 new ones are more than the 31 .* can be at most 24"),
    ({"ids": [3] * 31, "max_new_tokens": 1}, "there is no room left"),
    ({"ids": [3] * 32}, "prompt has 32 tokens"),
    ({"ids": [97]}, "prompt id 97 is out of range"),
    ({"ids": IDS, "cache": "static"}, "no option 'cache'"),
    ({"ids": IDS, "seed": -1}, "seed: got -1"),
    ({"ids": IDS, "stop": "."}, "stop: tiny-llama has no tokenizer that spells '.'"),
    ({"ids": IDS, "stop": [""]}, "stop: got"),
    ({"ids": IDS, "temprature": 1.0}, "no option 'temprature': did you mean 'temperature'"),
    ({"ids": IDS, "do_sample": True, "temperature": 0}, "temperature: got 0, expected a number above 0"),
    ({"ids": IDS, "do_sample": True, "temperature": -1.0}, "temperature: got -1.0, expected a number above 0"),
    ({"ids": IDS, "do_sample": True, "temperature": float("nan")}, "temperature: got nan"),
    ({"ids": IDS, "temperature": 0.7}, "temperature has no effect on greedy decoding: pass do_sample=True"),
    ({"ids": IDS, "do_sample": True, "top_p": 1.5}, "top_p: got 1.5, expected a number above 0, at most 1"),
    ({"ids": IDS, "do_sample": True, "top_k": 2.0}, "top_k: got 2.0"),
    ({"ids": IDS, "do_sample": True, "temperature": True}, "temperature: got True, expected a number"),
    ({"ids": IDS, "do_sample": True, "top_k": False}, "top_k: got False"),
    ({"ids": IDS, "do_sample": True, "typical_p": 2.0}, "typical_p: got 2.0"),
    ({"ids": IDS, "do_sample": True, "epsilon_cutoff": -5}, "epsilon_cutoff: got -5"),
    ({"ids": IDS, "do_sample": True, "eta_cutoff": 1.0}, "eta_cutoff: got 1.0"),
    ({"ids": IDS, "repetition_penalty": 0}, "repetition_penalty: got 0"),
    ({"ids": IDS, "repetition_penalty": float("inf")}, "repetition_penalty: got inf"),
    ({"ids": IDS, "no_repeat_ngram_size": -1}, "no_repeat_ngram_size: got -1"),
    ({"ids": IDS, "min_new_tokens": "a"}, "min_new_tokens: got 'a'"),
    ({"ids": IDS, "min_new_tokens": 21}, "min_new_tokens: got 21, but max_new_tokens is 20"),
    ({"ids": IDS, "new_tokens": 8}, "did you mean 'max_new_tokens'"),
    ({"ids": IDS, "do_sample": 1}, "do_sample: got 1, expected True or False"),
    ({"ids": IDS, "num_beams": 4}, "num_beams: got 4, expected 1, because regard"),
    ({"ids": IDS, "num_return_sequences": 2}, "num_return_sequences: got 2"),
]


@pytest.mark.parametrize(("given", "says"), REFUSED)
def test_what_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(regard.RegardError, match=says) as error:
        opened("llama").generate(**given)
    assert "\n" not in str(error.value)


def test_models_that_do_not_write(minilm) -> None:
    with pytest.raises(regard.RegardError, match=r"\(BertModel\) has no language head that writes"):
        minilm.generate("a river")
    sees_all = transformers.BertConfig(**SMALL, hidden_size=24, num_hidden_layers=2, num_attention_heads=3)
    both_ways = Model(transformers.BertLMHeadModel(sees_all).eval(), None, name="tiny-bert")
    with pytest.raises(regard.RegardError, match="isn't a causal model"):  # a row of its trace sees what came later
        both_ways.generate(ids=IDS)
    with pytest.raises(regard.RegardError, match="start token and 31 new ones are more than the 31"):
        opened("marian").generate(ids=IDS, max_new_tokens=31)


def test_a_model_that_reports_its_weights() -> None:
    config = transformers.AutoConfig.for_model("bloom", **SMALL, hidden_size=24, n_layer=2, n_head=3)
    own = Model(transformers.AutoModelForCausalLM.from_config(config).eval(), None, name="tiny-bloom")
    made = own.generate(ids=IDS, max_new_tokens=3)
    assert list(made.ids) == own.model.generate(torch.tensor([IDS]), max_new_tokens=3, do_sample=False)[0].tolist()
    assert torch.equal(made.trace.attention[1].dense(), own.trace(ids=list(made.ids)).attention[1].dense())


def test_a_story_goes_on(stories: Any) -> None:
    made = stories.generate("Once upon a time, there was a little", max_new_tokens=17)
    assert made.new.startswith((" girl", " boy"))
    one = stories.trace(ids=list(made.ids))
    for ours, theirs in zip(made.trace.attention, one.attention, strict=True):
        assert torch.equal(ours.dense(), theirs.dense())
    assert torch.equal(made.trace.logits, one.logits)
    assert [token.id for token in stories.trace(made.text).tokens] == list(made.ids)
    assert made.trace.word("time")
    inputs = stories.tokenizer("Once upon a time, there was a little", return_tensors="pt")
    torch.manual_seed(7)
    expected = stories.model.generate(**inputs, max_new_tokens=7, do_sample=True, temperature=1.5)[0].tolist()
    other = stories.generate(
        "Once upon a time, there was a little", max_new_tokens=7, do_sample=True, temperature=1.5, seed=7
    )
    assert list(other.ids) == expected


@pytest.mark.parametrize("kind", ["llama", "marian"])
def test_every_token_is_told_as_it_is_written_and_the_listener_may_end_it(kind: str) -> None:
    told: list[str] = []
    made = opened(kind).generate(ids=IDS, max_new_tokens=NEW, progress=told.append)
    assert told == [str(list(made.ids[made.start : made.start + n])) for n in range(1, NEW + 1)]
    assert opened(kind).generate(ids=IDS, max_new_tokens=NEW).ids == made.ids

    def enough(text: str) -> None:
        raise KeyError(text)

    with pytest.raises(KeyError):
        opened(kind).generate(ids=IDS, max_new_tokens=NEW, progress=enough)
