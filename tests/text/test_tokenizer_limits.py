"""Hostile tokenizers are refused in one line before a text is read with them, and usual ones are not."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, processors

from regard.errors import RegardError
from regard.text import tokenizers as ours
from regard.text.tokenizer_limits import ADDED, AROUND, check_tokenizer, check_tokenizer_steps
from regard.text.tokens import encode

TEXTS = "The bank of the river, and the bank that lent us money."


def folder_of(tokenizer: Any, folder: Path, **changes: Any) -> Path:
    """A tokenizer's files, some entries of its tokenizer.json changed."""
    for name, content in ours.tokenizer_files(tokenizer).items():
        (folder / name).write_text(content, "utf-8")
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")
    return folder


def replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def template(pieces: int, ids: int) -> dict[str, Any]:
    single = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}] * pieces + [{"Sequence": {"id": "A", "type_id": 0}}]
    pair = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    tokens = {"[CLS]": {"id": "[CLS]", "ids": [1] * ids, "tokens": ["[CLS]"] * ids}}
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


def charsmap(text: bytes) -> str:
    """A map of characters without a trie; its texts."""
    return base64.b64encode((4).to_bytes(4, "little") + bytes(4) + text + b"\0").decode()


DOUBLE = replace({"String": "a"}, "aa")
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
PAD = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"normalizer": {"type": "Sequence", "normalizers": [DOUBLE] * 40}}, "1,099,511,627,776 bytes of one"),
        ({"normalizer": replace({"Regex": "x*"}, "y" * 5000)}, "5,001 bytes of one"),
        ({"normalizer": replace({"String": ""}, "y" * 5000)}, "5,001 bytes of one"),
        ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 65}}, "more than 64 steps"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [BYTES] * 20}}, "3,145,728 bytes of one"),
        ({"decoder": {"type": "Sequence", "decoders": [DOUBLE] * 20}}, "1,048,576 bytes of one"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "the tokenizers library broke down"),
        (
            {"normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap(b"x" * 2000)}},
            "2,000 bytes of one|library broke down",
        ),
        ({"post_processor": template(10**4, 10**4)}, "puts 100,000,000 ids round a text"),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+Z"}, "behavior": "Isolated", "invert": False}},
         "the tokenizers library broke down: Onig"),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False}},
         "Oniguruma error"),
        ({"padding": PAD | {"strategy": {"Fixed": 10**9}}}, "pads texts to more than"),
        ({"padding": PAD | {"strategy": "BatchLongest", "pad_to_multiple_of": 10**9}}, "pads texts to more than"),
        ({"added_tokens": [{"special": True}] * (ADDED + 1)}, "it adds 80,001 tokens, 80,000 are the most"),
        ({"model": {"type": "WordPiece"}}, "cannot be read"),
        ({"model": []}, "cannot be read"),
    ],
)  # fmt: skip
def test_what_would_grow_break_or_block_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], changes: dict[str, Any], said: str
) -> None:
    folder = folder_of(ours.word_pieces(TEXTS), tmp_path, **changes)
    with pytest.raises(RegardError, match=said) as raised:
        ours.read_tokenizer(folder)
    assert "\n" not in str(raised.value)
    assert capfd.readouterr() == ("", "")  # a panic writes nothing of its own


@pytest.mark.parametrize("settings", [{"unk_token": 5}, {"cls_token": ["x"]}, {"model_input_names": 5}, []])
def test_settings_of_other_types_are_one_line(tmp_path: Path, settings: object) -> None:
    folder = folder_of(ours.words(TEXTS), tmp_path)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(RegardError) as raised:
        encode(ours.read_tokenizer(folder), "the bank")
    assert "\n" not in str(raised.value)


def test_a_vocabulary_without_the_unknown_word_reads_its_own_words_alone() -> None:
    made = ours.words(TEXTS)
    backend = tokenizers.Tokenizer(models.WordLevel({"the": 0, "bank": 1}, unk_token="[NO]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    own = type(made)(tokenizer_object=backend)
    check_tokenizer(own)
    assert encode(own, "the bank").ids == [0, 1]
    with pytest.raises(RegardError, match="the tokenizer cannot read the text: .*UNK"):
        encode(own, "the river")


def test_usual_tokenizers_pass(minilm: Any) -> None:
    check_tokenizer(minilm.tokenizer)
    for made in (ours.words(TEXTS, frame="both"), ours.characters(TEXTS), ours.byte_pairs(TEXTS, size=300)):
        check_tokenizer(made)
    backend = tokenizers.Tokenizer(models.BPE())
    backend.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(" ", "▁"), normalizers.Replace(tokenizers.Regex(" {2,}"), "▁")]
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel()
    around = [(f"[{n}]", n) for n in range(AROUND // 4)]
    backend.post_processor = processors.TemplateProcessing(
        single=" ".join(name for name, _ in around) + " $A", special_tokens=around
    )
    check_tokenizer_steps(backend)
