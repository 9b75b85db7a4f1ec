"""What is opened is what was saved, or says how it differs: no tensor twice, no key heads that are not needed."""

import re
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard import tensor_file
from regard.explain.causes.contributions import contributions
from regard.models.model import Model
from regard.nn.config import TransformerConfig
from regard.nn.transformer import Transformer
from regard.text import tokenizers
from regard.trace.trace import PairTrace
from tests.support.attention_outputs import make_model, traced
from tests.support.trace_files import Maker, refused, same

IDS = torch.tensor([[7, 11, 13, 17, 19]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captures")


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_was_saved_is_opened(folder: Path, data: Any) -> None:
    many, attention_outputs = data.draw(st.booleans()), data.draw(st.booleans())
    made: list[Any] = [Maker(data.draw).any() for _ in range(data.draw(st.integers(1, 3)) if many else 1)]
    file = folder / "a.safetensors"
    regard.save(made if many else made[0], file, attention_outputs=attention_outputs)
    opened = regard.open(file)
    for a, b in zip(made, opened if many else [opened], strict=True):
        same(a, b, attention_outputs=attention_outputs)
    assert isinstance(opened, list) == many


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_chosen_layers(folder: Path, data: Any) -> None:
    trace = Maker(data.draw, one_call_each=True).any()
    whole = trace.decoder if isinstance(trace, PairTrace) else trace
    layers = data.draw(st.lists(st.integers(0, len(whole.attention) - 1), min_size=1))
    file = folder / "b.safetensors"
    regard.save(trace, file, layers=layers)
    opened = regard.open(file)
    pairs = [(trace, opened)]
    if isinstance(trace, PairTrace):
        pairs = [(trace.encoder, opened.encoder), (trace.decoder, opened.decoder)]
    for a, b in pairs:
        for maps, values in (("attention", "values"), ("cross", "cross_values")):
            here, there = getattr(a, maps), getattr(b, maps)
            assert len(here) == len(there)
            for n in range(len(here)):
                if n not in layers:
                    with pytest.raises(regard.RegardError, match=rf"\[{n}\] was not saved: the file has"):
                        there[n]
                    continue
                torch.testing.assert_close(there[n].dense(), here[n].dense(), atol=1e-6, rtol=0)
                torch.testing.assert_close(there[n].sink_share, here[n].sink_share, atol=1e-6, rtol=0)
                v, w = getattr(a, values)[n], getattr(b, values)[n]
                assert (v is None) == (w is None)
                assert v is None or torch.equal(v, w)
        assert all(torch.equal(x, y) for x, y in zip(a.hidden_states, b.hidden_states, strict=True))


def test_chosen_layers_of_a_hybrid_and_of_several_calls(tmp_path: Path) -> None:
    types = ["conv", "full_attention", "conv", "full_attention"]
    hybrid = make_model("lfm2", num_hidden_layers=4, layer_types=types, num_key_value_heads=2)
    for model, layers, calls in ((hybrid, [2, 3], ((3, 0),)), (make_model("diffllama"), [1], ((1, 0), (1, 1)))):
        trace = Model(model, None, name="made").trace(ids=IDS[0])
        regard.save(trace, tmp_path / "a", layers=layers)
        opened = regard.open(tmp_path / "a")
        assert opened.attention.calls == calls
        for call in calls:
            torch.testing.assert_close(opened.attention[call].dense(), trace.attention[call].dense(), atol=1e-6, rtol=0)
        assert opened.attention.made == trace.attention.made
        with pytest.raises(
            regard.RegardError, match=r"attention\[0\] (was not saved: the file has|is not there: layer 0 has no)"
        ):
            opened.attention[0]


def test_an_opened_trace_is_saved_anew_over_its_own_file(bank: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    bank[0].save(file, layers=[1, 4])
    opened = regard.open(file)
    assert repr(opened).endswith("14 tokens, 2 of 6 layers, all-MiniLM-L6-v2)")
    opened.save(file)
    again = regard.open(file)
    assert again.status.notes == opened.status.notes == ("The file has attention and values for layers 1, 4 of 6.",)
    torch.testing.assert_close(again.attention[-2].dense(), bank[0].attention[4].dense(), atol=1e-6, rtol=0)
    with pytest.raises(regard.RegardError, match=r"attention\[3\] was not saved: the file has 1, 4 of 6"):
        opened.save(file, layers=[3])
    with pytest.raises(regard.RegardError, match=r"attention cannot be walked along, for of 6 it holds 1, 4"):
        list(again.attention)
    with pytest.raises(IndexError):
        again.attention[6]


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "gemma2", "t5", "bart"])
def test_contributions_of_an_opened_trace(kind: str, tmp_path: Path) -> None:
    model = make_model(kind, **({"num_key_value_heads": 2} if kind in ("llama", "gemma2") else {}))
    given = {"target_ids": [23, 29, 31]} if model.config.is_encoder_decoder else {}
    trace = Model(model, None, name=kind).trace(ids=IDS[0].tolist(), **given)
    trace.save(tmp_path / "a", attention_outputs=True)
    opened = regard.open(tmp_path / "a")
    same(trace, opened, attention_outputs=True)
    seen = 0
    pairs = [(trace.encoder, opened.encoder, None)] if given else [(trace, opened, None)]
    pairs += [(trace.decoder, opened.decoder, part) for part in (None, "cross")] if given else []
    for a, b, part in pairs:
        for layer in range(2):
            for row in range(len(a.tokens)):
                x, y = (contributions(each, row, layer, part=part) for each in (a, b))
                assert y.error < 1e-6 + x.error
                for name in ("norms", "shares", "residual", "bias", "vector"):
                    torch.testing.assert_close(getattr(x, name), getattr(y, name), atol=1e-6, rtol=0)
                seen += 1
    assert seen == (2 * 5 + 4 * 3 if given else 10)


def test_a_projection_that_traces_share_is_stored_once(bank: Any, minilm: Any, tmp_path: Path) -> None:
    bank[0].save(tmp_path / "one", attention_outputs=True)
    regard.save([bank[0], bank[1], bank[0]], tmp_path / "three", attention_outputs=True)
    names = list(safetensors.torch.load_file(tmp_path / "three"))
    assert [name for name in names if name.endswith("outputs.3.weight")] == ["trace.0.attention_outputs.3.weight"]
    assert not [name for name in names if name.startswith("trace.2.")]  # the same trace twice is stored once
    assert not [name for name in names if name.endswith("last_hidden_state")]  # it is the last hidden state
    one = regard.open(tmp_path / "three")[1]
    assert torch.equal(one.attention_outputs[3].weight, minilm.model.encoder.layer[3].attention.output.dense.weight)


@pytest.mark.parametrize(("dtype", "bits"), [(torch.bfloat16, 8), ("float16", 11)])
def test_narrower_numbers_say_how_far_off_they_are(bank: Any, tmp_path: Path, dtype: Any, bits: int) -> None:
    bank[0].save(tmp_path / "whole")
    bank[0].save(tmp_path / "a", dtype=dtype)
    opened = regard.open(tmp_path / "a")
    name = str(dtype).removeprefix("torch.")
    (note,) = [note for note in opened.status.notes if "stored as" in note]
    found = re.fullmatch(rf".*stored as {name}\. Weights are within (\S+) of the original \(288 rows\)\.", note)
    assert found is not None
    off = [(a.dense() - b.dense()).abs() for a, b in zip(bank[0].attention, opened.attention, strict=True)]
    measured = max(float(each[:, [0, 4, 9, 13]].max()) for each in off)
    assert float(found[1]) == pytest.approx(measured, rel=0.06)
    assert 0 < measured < 2.0**-bits * 8
    assert opened.last_hidden_state.dtype == getattr(torch, name)
    torch.testing.assert_close(opened.last_hidden_state.float(), bank[0].last_hidden_state, atol=2e-6, rtol=2.0**-bits)
    halved, whole = ((tmp_path / name).read_bytes() for name in ("a", "whole"))
    sizes = [len(raw) - 8 - int.from_bytes(raw[:8], "little") for raw in (halved, whole)]  # without the description
    assert sizes[0] <= 0.5 * sizes[1]
    bank[0].save(tmp_path / "b", dtype=torch.float32)  # no wider than it was, nothing to be noted
    same(bank[0], regard.open(tmp_path / "b"))


def test_what_a_model_would_say_is_spelled_without_it(tmp_path: Path) -> None:
    from regard.explain.texts.summary import summarise

    tokenizer = tokenizers.words(["the river bank was wide and the money was in the other bank by the old mill " * 3])
    torch.manual_seed(0)
    config = TransformerConfig.nanogpt(len(tokenizer), length=20, layers=2, d_model=16, heads=2)
    trace = Model(Transformer(config).eval(), tokenizer, name="small").trace("the river bank was wide")
    right = summarise([trace], "bank", top=7).predictions
    words = [each.text for prediction in right for each in prediction.candidates]
    assert not any(word.startswith("id ") for word in words)
    assert set(words) - set(trace.text.split()), "words that are not in the text"
    for dtype in (None, "bfloat16"):
        trace.save(tmp_path / "a", dtype=dtype)
        opened = regard.open(tmp_path / "a")
        again = summarise([opened], "bank", top=7).predictions
        assert [each.text for p in again for each in p.candidates if p.candidates] != []
        assert not any(each.text.startswith("id ") for p in again for each in p.candidates)
        if dtype is None:
            assert again == right
        opened.save(tmp_path / "b")  # what was opened and saved anew tells it still
        assert summarise([regard.open(tmp_path / "b")], "bank", top=7).predictions == again


@pytest.mark.parametrize("count", [-1, 10**8])
def test_a_number_of_layers_that_cannot_be(trace: Any, tmp_path: Path, monkeypatch: Any, count: int) -> None:
    dumps = tensor_file.json.dumps

    def changed(packed: Any, **how: Any) -> str:
        packed["attention"] |= {"count": count, "made": None}
        return dumps(packed, **how)

    monkeypatch.setattr(tensor_file.json, "dumps", changed)
    trace.save(tmp_path / "a")
    refused(f"attention: got {count} layers, expected 0 to 10,000", regard.open, tmp_path / "a")


def test_choices_that_cannot_be(trace: Any, pair: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"

    def no(says: str, what: Any = trace, **more: Any) -> None:
        refused(says, regard.save, what, file, **more)
        assert not list(tmp_path.iterdir())

    no("layer 2 does not exist: bert has layers 0 to 1", layers=[0, 2])
    no("layer -1 does not exist: layers are counted from 0", layers=[-1])
    no("layers: got none", layers=[])
    no("layer 2 does not exist: bart has layers 0 to 1", pair, layers=[2])
    no("dtype: got 'int8', expected bfloat16, float16 or float32", dtype=torch.int8)
    no("dtype: got 'bf16', expected", dtype="bf16")
    no("attention outputs with dtype bfloat16", attention_outputs=True, dtype="bfloat16")
    no("got no trace, expected at least one", [])
    trace.save(file)
    opened = regard.open(file)
    file.unlink()
    no("doesn't have them; was it opened from a file without them?", opened, attention_outputs=True)
    large = traced(make_model("bert"), IDS)
    large.hidden_states = (large.hidden_states[0] * 1e6, *large.hidden_states[1:])
    no(r"float16 cannot hold \d.*e\+0.: choose another", large, dtype="float16")
