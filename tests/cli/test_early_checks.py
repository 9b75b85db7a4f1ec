"""Refusals that come before torch: in one process, with exit code 2 and one line each."""

import json
import re
from pathlib import Path

import pytest

import regard
from regard.corpus.manifest import Manifest, ModelSummary
from regard.corpus.settings import Settings
from regard.errors import RegardError
from regard.explain.causes.outcomes import cosine
from regard.model_files.sizes import read_sizes
from regard.questions.patch.asked import PatchAsked
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
    (["see", "A bank", "--save", "a.safetensors", "--save-dtype", "int8"], "without it, that of the trace stays"),
    (["embed"], "Missing argument 'PATH...': regard embed texts/ --out texts.store"),
    (["find", "bank"], "Missing option '--store': regard find bank --store bank.store --sort right"),
    (["lesson", "1", "--figures", "text.txt"], "--figures 'text.txt': needs a folder: File exists"),
    (["lesson", "1", "--figures", "text.txt/new"], "--figures 'text.txt/new': needs a folder: Not a directory"),
    (["see", "--open", "none.safetensors"], "trace file 'none.safetensors' cannot be read: No such file"),
    (["see", "--open", "saved.safetensors", "--layer", "6"], "has layers 0 to 5"),
    (["see", "--open", "saved.safetensors", "--word", "bunk"], "word 'bunk' is not in the text 'a bank'"),
    (["why", "A bank", "--word", "bunk"], "the nearest are 'bank'"),
    (["why", "A bank", "--word", "bank", "--model", "./none"], "there is no such folder"),
    (["why", "--open", "saved.safetensors", "--word", "bunk"], "the nearest are 'bank'"),
    (["steps", "A bank", "--word", "bank", "--layer", "99"], OUT_OF_RANGE),
    (["steps", "A bank", "--word", "bank", "--head", "12"], "has heads 0 to 11"),
    (["steps", "A bank", "--word", "bunk"], "the nearest are 'bank'"),
    (["map", "none.txt", "--layer", "0"], "'none.txt' cannot be read: No such file"),
    (["map", "/dev/zero", "--layer", "0"], "'/dev/zero' cannot be read: it is a device, needs a file"),
    (["train", "/dev/zero", "--out", "new"], "'/dev/zero' cannot be read: it is a device"),
    (["train", "text.txt", "--out", "new", "--config", "/dev/zero"], "--config '/dev/zero' cannot be read: it is a"),
    (["see", "A bank", "--word", "bank", "--with", "a", "--static", "/dev/zero"], "'/dev/zero' cannot be read"),
    (["heads", "A bank", "--tests", "--seed", "-1"], "'--seed': given -1, needs a whole number from 0 to 2^63 - 1"),
    (["senses", "bank", "--store", "store", "--seed", "9" * 30], f"'--seed': given {'9' * 30}, needs a whole number"),
    (["shift", "bank", "--store", "store", "--column", "a", "--seed", "x"], "'--seed': given 'x', needs a whole"),
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
    (["tokens", "A bank", "--tokenizer", "./none"], "there is no such folder"),
    (["tokens", "A bank", " "], "text 2 is blank"),
    (["tokens", "A bank", "--tokenizer", "cl100k_base", "--ranks", "none"], "--ranks 'none' cannot be read"),
    (["evolve", "empty"], "has no watched traces: train with --watch SENTENCE"),
    (["evolve", "run", "--layer", "6"], "layer 6 is out of range: there are layers 0 to 5"),
    (["evolve", "run", "--part", "cross"], "the model is no encoder-decoder, its attention has one part"),
    (["see", "--open", "text.txt"], "'text.txt' is no whole trace file (header too large): give"),
    (["see", "--open", "void.txt"], "'void.txt' is no whole trace file (header too small)"),
    (["why", "--open", "short.safetensors", "--word", "a"], "is no whole trace file (incomplete metadata"),
    (["steps", "--open", "pair/model.safetensors", "--word", "a"], "is no whole trace file (its format is unknown)"),
    (["map", "--open", "map.safetensors"], "is no whole trace file (its format is 'regard attention map')"),
    (["see", "--open", "empty"], "trace file 'empty' cannot be read: it is a folder"),
    (["see", "A bank", "--target", "b"], "target: all-MiniLM-L6-v2 is no encoder-decoder, it reads a text alone"),
    (["see", "A bank", "--model", "bad.gguf"], "model 'bad.gguf' is truncated or no GGUF file (at byte 32 it needs"),
    (["see", "A bank", "--model", "void.gguf"], "model 'void.gguf' is truncated or no GGUF file"),
    (["patch", "a b", "a c", "--word", "a", "--model", "bad.gguf"], "'bad.gguf' is truncated or no GGUF file"),
    (["heads", "A bank", "--model", "bad.gguf"], "'bad.gguf' is truncated or no GGUF file"),
    (["tokens", "A bank", "--tokenizer", "bad.gguf"], "'bad.gguf' is truncated or no GGUF file"),
    (["generate", "A bank", "--model", "bad.gguf"], "'bad.gguf' is truncated or no GGUF file"),
    (["embed", "text.txt", "--out", "new", "--model", "bad.gguf"], "'bad.gguf' is truncated or no GGUF file"),
    (["serve", "--model", "bad.gguf"], "'bad.gguf' is truncated or no GGUF file"),
    (["serve", "--open", "text.txt"], "'text.txt' is no whole trace or attention map file (header"),
    (["serve", "--store", "none"], "store 'none': there is no such folder"),
    (["serve", "--run", "none"], "no folder 'none': needs a run, which regard train --out writes"),
    (["heads", "A bank", "--tests", "--model", "pair"], "--tests: pair is an encoder-decoder"),
    (["generate", "a", "--towards", "b", "--away", "c", "--layer", "3", "--model", "own"],
     "layer 3 is out of range: own"),
    (["generate", "a", "--towards", "b", "--away", "c", "--layer", "0", "--model", "pair"],
     "pair is an encoder-decoder"),
    (["attribute", "A bank", "--to", "a"], "--to: all-MiniLM-L6-v2 has no language head: give --word and --like"),
    (["attribute", "A bank", "--to", "a", "--model", "own", "--at", "bunk"], "the nearest are 'bank'"),
    (["patch", "A bank", "A river bank", "--word", "bank"],
     "patch_sweep: 'A river bank' has 5 tokens, 'A bank' 4: give at= the words that both have"),
    (["patch", "A bank", "A river bank", "--word", "bank", "--noising"], "'A bank' has 4 tokens, 'A river bank' 5"),
    (["patch", "A bank", "A bunk", "--word", "bank"], "text 2: word 'bank' is not in the text 'A bunk'"),
    (["find", "bank", "--store", "none"], "store 'none': there is no such folder; `regard embed PATH --out STORE`"),
    (["find", "bank", "--store", "empty"], "store 'empty': there is no manifest.json in it"),
    (["find", "bank", "--store", "store", "--layer", "2"], "layer 2: the store keeps 5; `regard embed --layers` says"),
    (["senses", "bank", "--store", "none"], "store 'none': there is no such folder"),
    (["shift", "bank", "--store", "store", "--store", "none"], "store 'none': there is no such folder"),
    (["heads", "--store", "none"], "store 'none': there is no such folder"),
    (["heads", "--store", "none"], "store 'none': there is no such folder"),
    (["embed", "text.txt", "--out", "new", "--layers", "9"], "layer 9 is out of range: all-MiniLM-L6-v2 has"),
    (["embed", "text.txt", "--out", "new", "--model", "./none"], "model './none': there is no such folder"),
    (["train", "void.txt", "--out", "new"], "'void.txt' is empty: there is nothing to train on"),
    (["train", "latin.txt", "--out", "new"], "'latin.txt' is no UTF-8: byte 0xe9 at place 3"),
    (["train", "--pairs", "text.txt", "--out", "new"], "'text.txt', line 1: no tab, which stands between source and"),
    (["train", "--pairs", "few.tsv", "--out", "new"], "held_out: 2000 pairs cannot be held out of 1"),
    (["train", "text.txt", "--out", "new", "--set", "layer=3"], "settings: there is none named 'layer'"),
    (["train", "text.txt", "--out", "new", "--set", "learning_rate="], "did you mean 'rate'?"),
    (["train", "text.txt", "--out", "new", "--set", "layres=2"], "none named 'layres', did you mean 'layers'?"),
    (["train", "text.txt", "--out", "new", "--set", "layers=x"], "layers: given 'x', needs a whole number"),
    (["train", "text.txt", "--out", "new", "--set", "heads=5"], "d_model: given 128, needs to be a multiple of the 5"),
    (["train", "--repeated", "--out", "new", "--steps", "0"], "steps: given 0, needs 1 or more"),
    (["train", "text.txt", "--out", "new", "--watch", " "], "--watch is blank: it needs at least one word"),
    (["embed", "text.txt", "--out", "new", "--lemma", "xx"], "--lemma: simplemma knows no language 'xx'"),
    (["train", "text.txt", "--out", "own"], "--out 'own' is not empty and holds no run: name another folder"),
    (["train", "none.txt", "--out", "new"], "'none.txt' cannot be read: No such file"),
    (["train", "--pairs", "none.tsv", "--out", "new"], "'none.tsv' cannot be read: No such file"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, minilm) -> Path:
    """Models, a saved trace and a run: whatever the calls name."""
    (tmp_path / "text.txt").write_text("A man on a river bank.")
    (tmp_path / "empty").mkdir()
    (tmp_path / "void.txt").write_text("")
    (tmp_path / "void.gguf").write_bytes(b"")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "few.tsv").write_text("a bank\teine Bank\n")
    (tmp_path / "bad.gguf").write_bytes(
        b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + (1).to_bytes(8, "little") + b"x" * 25
    )
    (tmp_path / "store").mkdir()
    reader = ModelSummary("all-MiniLM-L6-v2", "", "", 6, 12, 384)
    Manifest(reader, Settings().to_json(), {}, [], layers=[5]).write(tmp_path / "store")
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
    trace = minilm.trace("a bank")
    trace.save(tmp_path / "saved.safetensors")
    (tmp_path / "short.safetensors").write_bytes((tmp_path / "saved.safetensors").read_bytes()[:-9])
    trace.attention[0].save(tmp_path / "map.safetensors")
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
    with pytest.raises(RegardError) as late:
        minilm.patch_sweep("A bank", "A river bank", cosine("bank", minilm.trace("bank")["bank"], "alone"))
    with pytest.raises(RegardError, match=re.escape(str(late.value))):
        PatchAsked(word="bank").check_default(["A bank", "A river bank"])
