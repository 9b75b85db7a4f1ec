"""A model's stack alone gives the states that a watched pass gives, and windows to compare on have many lengths."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import regard
from regard.corpus.embed_texts import embed
from regard.corpus.manifest import read_manifest
from regard.corpus.settings import Settings
from regard.corpus.store import Store
from regard.corpus.writing.cut_windows import cut_texts, window_size
from regard.corpus.writing.plain_stack import (
    EMULATED,
    PlainStack,
    autocast_states,
    has_segments,
    note_on_processor,
    states_by_window,
    windows_to_compare_on,
)
from regard.errors import RegardError
from regard.models.model import Model
from regard.models.states import Window, read_states
from tests.support import MONEY, RIVER, make_tiny, own_models
from tests.support.corpora import store_digest, write_texts

FAMILIES = [("bert", True, False), ("distilbert", False, False), ("gpt2", True, True)]
BF16 = Settings(statistics=False, dtype="float32", shard=700, precision="bf16")
SIZES = {"qwen3": {"num_key_value_heads": 1, "head_dim": 8}}


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


def opened(folder: Path, minilm: Model, kind: str) -> Model:
    make_tiny(folder / kind, minilm, kind, **SIZES.get(kind, {}))
    return regard.load(folder / kind, device="cpu")


def windows_of(model: Model) -> list[Window]:
    found = cut_texts(model, [RIVER, MONEY, "bank", f"{RIVER} {MONEY} " * 3], window_size(model, BF16))
    return [window for cut in found if cut is not None for window in cut.windows]


@pytest.mark.parametrize("kind", ["bert", "gpt2", "qwen3"])
def test_near_float32_and_not_the_same(kind: str, tmp_path: Path, minilm: Model) -> None:
    model = opened(tmp_path, minilm, kind)
    windows, before = windows_of(model), model.trace(RIVER).last_hidden_state
    read = autocast_states(model, [0, 1], window_size(model, BF16))
    found, again = ({n: b.states[r] for b in read(windows) for r, n in enumerate(b.numbers)} for _ in range(2))
    for batch in read_states(model, windows, [0, 1]):
        for states, number in zip(batch.states, batch.numbers, strict=True):
            off = float((found[number] - states).abs().max() / states.abs().max())
            assert 1e-5 < off < 3e-2
            assert found[number].dtype == torch.float32
            assert torch.equal(found[number], again[number])
    assert not torch.is_autocast_enabled("cpu")
    assert torch.equal(model.trace(RIVER).last_hidden_state, before)


def test_weights_stored_in_bf16(tmp_path: Path, minilm: Model) -> None:
    opened(tmp_path, minilm, "qwen3").model.bfloat16().save_pretrained(tmp_path / "half")
    minilm.tokenizer.save_pretrained(tmp_path / "half")
    model = regard.load(tmp_path / "half", device="cpu")
    windows = windows_of(model)
    read = autocast_states(model, [1], window_size(model, BF16))
    expected = {n: b.states[r] for b in read_states(model, windows, [1]) for r, n in enumerate(b.numbers)}
    for batch in read(windows):
        for states, number in zip(batch.states, batch.numbers, strict=True):
            torch.testing.assert_close(states, expected[number], rtol=0, atol=3e-2 * float(states.abs().max()))


class Deciding(transformers.BertModel):
    """A model that gives other states where nothing watches its attention."""

    def forward(self, input_ids: Any, **options: Any) -> Any:
        found = super().forward(input_ids, **options)
        if self.config._attn_implementation == "sdpa":
            found.last_hidden_state = found.last_hidden_state * 1.001
        return found


def test_a_stack_that_gives_other_states_alone_is_refused(tmp_path: Path, minilm: Model) -> None:
    bert = opened(tmp_path, minilm, "bert")
    model = regard.load(Deciding(bert.model.config).eval(), tokenizer=bert.tokenizer)
    with pytest.raises(RegardError, match=r"--precision bf16: states of \S+ differ from torch's by 1.0e-03 of the"):
        autocast_states(model, [1], window_size(model, BF16))


class Refusing(transformers.BertModel):
    """A model that multiplies what autocast made narrow by what it left wide, as code of its own may."""

    def forward(self, input_ids: Any, **options: Any) -> Any:
        found = super().forward(input_ids, **options)
        if torch.is_autocast_enabled("cpu"):
            torch.ones(2, dtype=torch.bfloat16).dot(torch.ones(2))
        return found


def test_a_model_that_cannot_run_so_is_refused_in_one_line(tmp_path: Path, minilm: Model) -> None:
    bert = opened(tmp_path, minilm, "bert")
    model = regard.load(Refusing(bert.model.config).eval(), tokenizer=bert.tokenizer)
    read = autocast_states(model, [1], window_size(model, BF16))
    with pytest.raises(RegardError, match=r"--precision bf16: \S+ \(Refusing\) cannot be read so: .*; leave it out"):
        list(read(windows_of(model)))


def test_autocast_refuses_a_model_of_our_own(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(RIVER, "utf-8")
    with pytest.raises(RegardError, match="--precision bf16: .* needs a model of transformers"):
        embed(tmp_path / "a.txt", tmp_path / "store", model=own_models.opened("bert"), settings=BF16)
    assert not (tmp_path / "store").exists()


def test_a_store_says_what_it_is(tmp_path: Path, minilm: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its manifest, its status and what is asked of it name the precision and the measured difference."""
    monkeypatch.chdir(tmp_path)
    bert = opened(tmp_path, minilm, "bert")
    write_texts(tmp_path / "texts", 12)
    report = embed("texts", "store", model=bert, settings=BF16)
    manifest = read_manifest(Path("store"))
    assert manifest.settings["precision"] == "bf16"
    near = manifest.closeness
    assert near == report.closeness
    assert 100 < near["states"] <= 2 * report.counts["tokens"]  # of two layers
    assert 0.999 < near["least_cosine"] < near["mean_cosine"] < 1
    assert near["following_cosine"] < 0.9
    said = f"{1 - near['mean_cosine']:.1e} on average"
    assert [said in note for note in report.notes if note != EMULATED] == [True]
    assert not any(name.startswith("bf16") for name in report.counts)
    whole = store_digest(Path("store"))
    again = embed("texts", "store", model=bert, settings=BF16)
    assert (again.built, again.closeness) == (0, near)
    assert store_digest(Path("store")) == whole
    with Store("store") as store:
        assert report.notes[0] in store.find("bank").notes
    with pytest.raises(RegardError, match="made with setting precision bf16, given is float32"):
        embed("texts", "store", model=bert, settings=Settings(statistics=False, dtype="float32", shard=700))


def test_a_processor_without_bf16_is_named(minilm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for capabilities, said in (
        ({"avx2": True, "avx512_bf16": False, "amx_bf16": False}, EMULATED),
        ({"avx2": True, "avx512_bf16": True, "amx_bf16": False}, ""),
        ({"neon": True}, ""),
    ):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda found=capabilities: found, raising=False)
        assert note_on_processor(minilm) == said
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert note_on_processor(minilm) == ""
