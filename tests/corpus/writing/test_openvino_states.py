"""What OpenVINO computes is what torch computes, the same bits each time; where it is not, it is refused by name."""

import ctypes
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import regard
from regard.corpus.embed_texts import embed
from regard.corpus.manifest import read_manifest
from regard.corpus.settings import Settings
from regard.corpus.writing import openvino_states
from regard.corpus.writing.cut_windows import cut_texts, window_size
from regard.errors import RegardError
from regard.models.model import Model
from regard.models.states import Window, read_states
from tests.support import MONEY, RIVER, make_tiny
from tests.support.corpora import read_rows, store_digest, write_texts
from tests.support.shards import digest_of_shard

needs_openvino = pytest.mark.skipif(find_spec("openvino") is None, reason="OpenVINO (extra openvino) is not installed")
VECTORS = Settings(statistics=False, dtype="float32", layers=(), shard=700)
FAST = Settings(statistics=False, dtype="float32", layers=(), shard=700, backend="openvino")


SIZES = {  # mistral: its windows of attention are shorter than the texts
    "gpt2": {"n_positions": 31, "n_embd": 24, "n_layer": 2, "n_head": 3},
    "mistral": {"num_key_value_heads": 1, "head_dim": 8, "sliding_window": 7},
}
__all__ = ["bert"]  # a fixture


def tiny(folder: Path, minilm: Model, kind: str) -> Model:
    """A tiny model of a family, of two layers."""
    make_tiny(folder, minilm, kind, **SIZES.get(kind, {}))
    return regard.load(folder, device="cpu")


@pytest.fixture
def bert(tmp_path: Path, minilm: Model) -> Model:
    return tiny(tmp_path / "bert", minilm, "bert")


def windows_of(model: Model) -> list[Window]:
    """Windows of many lengths, some of one."""
    texts = [RIVER, MONEY, RIVER, "bank", *(" ".join(RIVER.split()[:n]) for n in range(1, 9)), f"{RIVER} {MONEY} " * 3]
    found = cut_texts(model, texts, window_size(model, VECTORS))
    return [window for cut in found if cut is not None for window in cut.windows]


def vectors_of(batches: Any) -> dict[int, torch.Tensor]:
    """The states of each window, by its number."""
    return {number: batch.states[row] for batch in batches for row, number in enumerate(batch.numbers)}


def test_without_openvino(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, minilm: Model) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "a.txt").write_text("A bank.", "utf-8")
    said = r'--backend openvino needs OpenVINO: pip install "regard\[corpus,openvino\]"'
    with pytest.raises(RegardError, match=said):
        embed(tmp_path / "a.txt", tmp_path / "store", model=minilm, settings=FAST)
    assert not (tmp_path / "store").exists()


@needs_openvino
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's stack_t")
def test_signal_handlers_keep_their_stack(bert: Model) -> None:
    """OpenVINO's own would be freed in another thread, and a signal write into freed memory."""

    def signal_stack() -> bytes:
        found = ctypes.create_string_buffer(64)
        assert ctypes.CDLL(None).sigaltstack(None, found) == 0
        return found.raw

    before = signal_stack()
    reader = openvino_states.openvino_states(bert, [0], window_size(bert, VECTORS))
    assert signal_stack() == before
    del reader
    assert signal_stack() == before


@needs_openvino
@pytest.mark.parametrize("kind", ["bert", "distilbert", "gpt2", "mistral"])
def test_the_states_of_torch(kind: str, tmp_path: Path, minilm: Model) -> None:
    model = tiny(tmp_path / kind, minilm, kind)
    windows, before = windows_of(model), model.trace(RIVER).last_hidden_state
    for layers in ([1], [0, 1]):
        read = openvino_states.openvino_states(model, layers, window_size(model, VECTORS))
        found, expected = vectors_of(read(windows)), vectors_of(read_states(model, windows, layers))
        assert sorted(found) == sorted(expected) == list(range(len(windows)))
        for number, states in expected.items():
            assert states.shape == (len(layers), len(windows[number].ids), 24)
            torch.testing.assert_close(found[number], states, rtol=0, atol=1e-5)
    assert torch.equal(model.trace(RIVER).last_hidden_state, before)  # the model is as it was


@needs_openvino
def test_the_same_bits_whatever_was_read_before(bert: Model) -> None:
    windows, size = windows_of(bert), window_size(bert, VECTORS)
    first = vectors_of(openvino_states.openvino_states(bert, [1], size)(windows))
    read = openvino_states.openvino_states(bert, [1], size)
    for length in sorted({len(window.ids) for window in windows}, reverse=True):  # the longest first
        alike = [number for number, window in enumerate(windows) if len(window.ids) == length]
        again = vectors_of(read([windows[number] for number in alike]))
        assert all(torch.equal(again[at], first[number]) for at, number in enumerate(alike))


@needs_openvino
def test_nothing_is_reported_to_anybody(bert: Model) -> None:
    openvino_states.openvino_states(bert, [1], window_size(bert, VECTORS))
    assert "openvino_telemetry" not in sys.modules
    for name in ("telemetry_utils", "convert_impl"):
        assert sys.modules[f"openvino.tools.ovc.{name}"].tm.__name__ == "openvino.tools.ovc.telemetry_stub"


class Deciding(transformers.BertModel):
    """A model that computes something else for long texts, which a trace of a short one does not show."""

    def forward(self, input_ids: Any, **options: Any) -> Any:
        found = super().forward(input_ids, **options)
        if input_ids.shape[1] > 10:
            found.last_hidden_state = found.last_hidden_state * 1.001
        return found


class Refusing(transformers.BertModel):
    """A model that asks for its input's numbers, and for an operation that has no counterpart."""

    def forward(self, input_ids: Any, **options: Any) -> Any:
        found = super().forward(input_ids, **options)
        found.last_hidden_state = (
            torch.linalg.matrix_exp(found.last_hidden_state[..., :1, :1]) + found.last_hidden_state
        )
        return found


@needs_openvino
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Deciding, r"states of \S+ differ from torch's by 1.0e-03 of the largest number, allowed is 1e-05: leave"),
        (Refusing, r"\(Refusing\) cannot be converted: .*; leave the option out"),
    ],
)
def test_a_model_that_is_not_converted_rightly_is_refused(kind: Any, said: str, bert: Model) -> None:
    model = regard.load(kind(bert.model.config).eval(), tokenizer=bert.tokenizer)
    with pytest.raises(RegardError, match=f"--backend openvino: .*{said}") as refused:
        openvino_states.openvino_states(model, [1], window_size(model, VECTORS))
    assert "\n" not in str(refused.value)


def has_bf16() -> bool:
    """Whether OpenVINO computes in bf16 on this processor."""
    if find_spec("openvino") is None:
        return False
    with openvino_states._openvino() as openvino:
        return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


@pytest.mark.skipif(not has_bf16(), reason="OpenVINO is not there, or the processor has no bf16 arithmetic")
def test_bf16_is_near_float32_and_not_the_same(bert: Model) -> None:
    windows, size = windows_of(bert), window_size(bert, VECTORS)
    found, again = (
        vectors_of(openvino_states.openvino_states(bert, [0, 1], size, precision="bf16")(windows)) for _ in range(2)
    )
    off = [
        float((found[number] - states).abs().max() / states.abs().max())
        for number, states in vectors_of(read_states(bert, windows, [0, 1])).items()
    ]
    assert all(1e-5 < each < 3e-2 for each in off)
    assert all(torch.equal(found[number], again[number]) for number in found)


@needs_openvino
def test_a_processor_without_bf16_is_refused(bert: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenVINO itself computes in float32 there, and says nothing."""
    with openvino_states._openvino() as openvino:
        monkeypatch.setattr(openvino.Core, "get_property", lambda *given: ["FP32", "INT8"])
        with pytest.raises(RegardError, match=r"--precision bf16: .* no bf16 arithmetic \(OpenVINO lists FP32, INT8\)"):
            openvino_states.openvino_states(bert, [1], window_size(bert, VECTORS), precision="bf16")


@needs_openvino
def test_a_store(tmp_path: Path, bert: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows and, within 1e-5, vectors; the same bytes again; and nothing else goes on in its folder."""
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "texts", 12)
    for name, settings in (("torch", VECTORS), ("one", FAST), ("two", FAST)):
        embed("texts", name, model=bert, settings=settings)
    (rows, vectors), (others, expected) = read_rows(Path("one")), read_rows(Path("torch"))
    places = ("document", "start", "end", "word")
    assert [[row[name] for name in places] for row in rows] == [[row[name] for name in places] for row in others]
    torch.testing.assert_close(torch.tensor(vectors), torch.tensor(expected), rtol=0, atol=1e-5)
    whole = store_digest(Path("one"))
    assert store_digest(Path("two")) == whole
    manifest = read_manifest(Path("one"))
    assert manifest.settings["backend"] == "openvino"
    assert re.fullmatch(r"\d{4}\.\d+\.\d+", manifest.environment["openvino"])
    assert "openvino" not in read_manifest(Path("torch")).environment
    with pytest.raises(RegardError, match="made with setting backend openvino, given is torch"):
        embed("texts", "one", model=bert, settings=VECTORS)
    with pytest.raises(RegardError, match="made with setting backend torch, given is openvino"):
        embed("texts", "torch", model=bert, settings=FAST)
    assert store_digest(Path("one")) == whole


@needs_openvino
@pytest.mark.long
def test_the_same_bytes_in_processes(tmp_path: Path, bert: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "texts", 40)
    embed("texts", "here", model=bert, settings=FAST)
    embed("texts", "two", model=tmp_path / "bert", settings=FAST, workers=2)
    here, two = (
        {path.name: digest_of_shard(path) for path in Path(name, "shards").iterdir()} for name in ("here", "two")
    )
    assert len(here) > 10
    assert here == two


@needs_openvino
def test_a_converted_model_is_kept_and_made_again_where_it_is_damaged(
    bert: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openvino_states, "converted_models_folder", lambda: tmp_path / "kept")
    windows, size, made = windows_of(bert), window_size(bert, VECTORS), []
    convert = openvino_states._converted
    monkeypatch.setattr(openvino_states, "_converted", lambda *given, **more: made.append(1) or convert(*given, **more))

    def read() -> dict[int, torch.Tensor]:
        return vectors_of(openvino_states.openvino_states(bert, [1], size, digest="d")(windows))

    first, second = read(), read()
    assert made == [1]
    assert all(torch.equal(first[number], second[number]) for number in first)
    (file,) = (tmp_path / "kept").glob("*/model.bin")
    assert sorted(path.name for path in file.parent.iterdir()) == ["model.bin", "model.xml", "sha256.txt"]
    whole = file.read_bytes()
    file.write_bytes(whole[:999] + bytes([whole[999] ^ 1]) + whole[1000:])  # one bit, of a word that is seldom read
    third = read()
    assert made == [1, 1]
    assert file.read_bytes() == whole
    file.with_name("model.xml").write_text("<net")
    assert all(torch.equal(first[number], each[number]) for number in first for each in (third, read()))
    assert made == [1, 1, 1]
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [file.parent.name]


@needs_openvino
def test_a_cache_that_cannot_be_written_keeps_nothing(bert: Model, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "kept").write_text("a file")
    monkeypatch.setattr(openvino_states, "converted_models_folder", lambda: tmp_path / "kept")
    assert list(openvino_states.openvino_states(bert, [1], window_size(bert, VECTORS), digest="d")(windows_of(bert)))


def test_what_a_conversion_depends_on_names_it(minilm: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino_states, "version", lambda package: "1")
    named = {
        openvino_states.converted_model_file(minilm, digest, layers, segments=segments, masked=masked)
        for digest in ("a", "b") for layers in ([5], [4, 5]) for segments in (True, False) for masked in (True, False)
    }  # fmt: skip
    assert len(named) == 16
    monkeypatch.setattr(openvino_states, "version", lambda package: "2")
    assert openvino_states.converted_model_file(minilm, "a", [5], segments=True, masked=True) not in named
    assert {file.parent.parent for file in named} == {openvino_states.converted_models_folder()}
