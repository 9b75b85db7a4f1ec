"""Refusals that come before torch: in one process, with exit code 2 and one line each."""

import json
from pathlib import Path

import pytest

import regard
from regard.model_files.sizes import read_sizes
from tests.support import in_one_process, make_tiny

OUT_OF_RANGE = "layer 99 is out of range: all-MiniLM-L6-v2 has layers 0 to 5"

CALLS = [
    (["see", "A bank", "--layer", "99"], OUT_OF_RANGE),
    (["see", "A bank", "--layer", "-7"], "layers 0 to 5, or -6 to -1 from the end"),
    (["see", "A bank", "--head", "99"], "head 99 is out of range: all-MiniLM-L6-v2 has heads 0 to 11"),
    (["see", "A bank", "--word", "bunk"], "word 'bunk' is not in the text 'A bank': the nearest are 'bank'"),
    (["see", "A bank", "A river", "--word", "bank"], "text 2: word 'bank' is not in the text 'A river'"),
    (["see", "A bank", "--model", "./none"], "model './none': there is no such folder"),
    (["see", "A bank", "--model", "none.gguf"], "model 'none.gguf': there is no such file"),
    (["see", "A bank", "--model", "empty"], "'empty' is no model folder: it has no config.json"),
    (["see", "A bank", "--model", "pickled"], "weights are pickled only (model.bin)"),
    (["see", "A bank", "--model", "no/such/name"], "there is no such folder"),
    (["see", "A bank", "--model", "no such"], "it is no name on the hub"),
    (["see", "A bank", "--model", "nobody/nothing"], "not in the cache"),
    (["see", "A bank", "--wrod", "bank"], "No such option: --wrod"),
    (["see", "A bank", "--top", "0"], "--top: given 0"),
    (["see", "A bank", "--json", "none/a.json"], "there is no folder 'none'"),
    (["see", "A bank", "--word", "bank", "--with", "a", "--static", "none.txt"], "'none.txt' cannot be read: No"),
    (["see", "A bank", "--save", "a.safetensors", "--save-layers", "0,6"], "layer 6 does not exist"),
    (["see", "A bank", "--save", "a.safetensors", "--save-heads", "12"], "head 12 does not exist: layer 0 has heads"),
    (["see", "A bank", "--save", "a.safetensors", "--save-dtype", "int8"], "dtype: given 'int8', needs bfloat16"),
    (["see", "--open", "none.safetensors"], "no trace file 'none.safetensors'"),
    (["see", "--open", "saved.safetensors", "--layer", "6"], "has layers 0 to 5"),
    (["see", "--open", "saved.safetensors", "--word", "bunk"], "word 'bunk' is not in the text 'a bank'"),
    (["why", "A bank", "--word", "bunk"], "the nearest are 'bank'"),
    (["why", "A bank", "--word", "bank", "--model", "./none"], "there is no such folder"),
    (["why", "--open", "saved.safetensors", "--word", "bunk"], "the nearest are 'bank'"),
    (["steps", "A bank", "--word", "bank", "--layer", "99"], OUT_OF_RANGE),
    (["steps", "A bank", "--word", "bank", "--head", "12"], "has heads 0 to 11"),
    (["steps", "A bank", "--word", "bunk"], "the nearest are 'bank'"),
    (["map", "none.txt", "--layer", "0"], "cannot read 'none.txt'"),
    (["map", "text.txt", "--layer", "99"], OUT_OF_RANGE),
    (["map", "text.txt", "--layer", "0", "--head", "-13"], "or -12 to -1 from the end"),
    (["map", "text.txt", "--layer", "0", "--model", "./none"], "there is no such folder"),
    (["map", "--open", "saved.safetensors", "--layer", "6"], "has layers 0 to 5"),
    (["generate", "A bank", "--model", "./none"], "there is no such folder"),
    (["generate", "A bank", "--model", "pair"], "generate: pair is an encoder-decoder: use regard translate"),
    (["generate", "A bank", "--model", "tiny", "--temperature", "-1"], "temperature: given -1.0, needs a number"),
    (["generate", "A bank", "--model", "tiny", "--top-k", "-1"], "top_k: given -1, needs"),
    (["translate", "A bank", "--model", "tiny"], "translate: tiny is no encoder-decoder"),
    (["translate", "A bank", "--model", "pair", "--layer", "2"], "layer 2 is out of range: pair has layers 0 to 1"),
    (["see", "A bank", "--target", "Eine Bank", "--model", "pair", "--word", "bunk"], "target: word 'bunk' is not in"),
    (["see", "A bank", "--model", "pair", "--window", "8"], "--window: pair is an encoder-decoder"),
    (["steps", "A bank", "--model", "pair", "--word", "bank"], "steps: pair is an encoder-decoder"),
    (["see", "A bank", "--model", "tiny", "--layer", "2"], "layer 2 is out of range: tiny has layers 0 to 1"),
    (["see", "A bank", "--model", "own", "--layer", "3"], "layer 3 is out of range: own has layers 0 to 2"),
    (["see", "A bank", "--model", "run", "--head", "4"], "head 4 is out of range: run has heads 0 to 3"),
    (["positions", "--kind", "learned", "--model", "./none"], "there is no such folder"),
    (["positions", "--kind", "learned", "--model", "pair"], "pair is an encoder-decoder"),
    (["positions", "--kind", "rotary", "--width", "3"], "--width: given 3, needs to be even"),
    (["tokens", "A bank", "--tokenizer", "./none"], "there is no such folder"),
    (["tokens", "A bank", " "], "text 2 is blank"),
    (["tokens", "A bank", "--tokenizer", "cl100k_base", "--ranks", "none"], "--ranks 'none' cannot be read"),
    (["evolve", "empty"], "has no watched traces: train with --watch SENTENCE"),
    (["evolve", "run", "--layer", "6"], "layer 6 is out of range: there are layers 0 to 5"),
    (["evolve", "run", "--part", "cross"], "the model is no encoder-decoder, its attention has one part"),
    (["train", "none.txt", "--out", "new"], "'none.txt' cannot be read: No such file"),
    (["train", "--pairs", "none.tsv", "--out", "new"], "'none.tsv' cannot be read: No such file"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, minilm) -> Path:
    """Models, a saved trace and a run: whatever the calls name."""
    (tmp_path / "text.txt").write_text("A man on a river bank.")
    (tmp_path / "empty").mkdir()
    make_tiny(tmp_path / "tiny", minilm)
    pair = {"model_type": "marian", "is_encoder_decoder": True, "architectures": ["MarianMTModel"], "encoder_layers": 2,
            "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}  # fmt: skip
    own = {"regard": "transformer", "version": 1, "vocabulary": 9, "kind": "decoder", "layers": 3, "heads": 4}
    for name, config in {
        "pair": pair,
        "own": own,
        "pickled": {"model_type": "bert"},
        "run/checkpoints/step-000001": own,
    }.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    (tmp_path / "pair" / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (tmp_path / "pickled" / "model.bin").write_bytes(b"")
    (tmp_path / "run" / "latest.json").write_text('{"checkpoint": "step-000001"}')
    (tmp_path / "run" / "watch").mkdir()
    minilm.trace("a bank").save(tmp_path / "run" / "watch" / "step-000000.safetensors")
    minilm.trace("a bank").save(tmp_path / "saved.safetensors")
    return tmp_path


def test_refusals_do_not_wait_for_torch(folder: Path) -> None:
    before = sorted(path.name for path in folder.rglob("*"))
    told = in_one_process(folder, [call for call, _ in CALLS], watch="torch,transformers,matplotlib")
    for (call, says), (code, out, err) in zip(CALLS, told, strict=True):
        assert code == 2, call
        assert out == "", call
        assert err.startswith("regard: error: "), (call, err)
        assert err.count("\n") == 1, (call, err)
        assert says in err, (call, err)
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_what_is_told_early_is_what_is_told_late(folder: Path, minilm) -> None:
    tiny = regard.load(folder / "tiny")
    trace = tiny.trace("A bank")
    seen = read_sizes(folder / "tiny")
    assert (seen.layers, seen.heads, seen.pairs) == (len(trace.attention), len(trace.attention[0]), tiny.pairs)
    default = read_sizes(None)
    assert (default.name, default.layers, default.heads, default.pairs) == (minilm.name, 6, 12, minilm.pairs)
