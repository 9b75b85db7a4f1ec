"""Check what a tokenizer's steps would make of a text before any is read with it: they may come from anybody.

A tokenizer.json is a program: its steps replace, split and join, and a few letters in it can make a gigabyte of a word,
or lead the library, which is written in Rust, to where it panics.
"""

import base64
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import RegardError, first_line
from regard.files import read_regular

# It takes every way through a tokenizer: pieces, numbers, unknown characters, a long word.
PROBE = f"A bank, é 1 ☃ 银行.\n{'a' * 40}"
STEPS = 64  # steps of one kind
GROWTH = 1000  # times as many bytes as a text has, after all steps that change it
AROUND = 4096  # ids that stand round a text
ADDED, VOCABULARY = 80_000, 1 << 20  # tokens: the most that are published are 66,000 and 900,000
LARGEST = 1 << 26  # bytes of a tokenizer.json: the largest that are published have half of that
PADDING = 1 << 20  # tokens that a tokenizer.json may ask to pad each text to
GROWING = {"ByteLevel": 2, "Metaspace": 3, "BertNormalizer": 3, "NFKD": 18, "NFKC": 18, "NFD": 4, "NFC": 3}
KINDS = ("normalizers", "pretokenizers", "processors", "decoders")  # what a sequence of steps has them as


def check_tokenizer(tokenizer: Any) -> None:
    """Check a tokenizer's steps, as far as it is of the fast kind, and read one short text with it."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        check_tokenizer_steps(backend)
    with tokenizer_panics_caught():
        try:
            ids = tokenizer(PROBE, truncation=False, padding=False, verbose=False)["input_ids"]
            tokenizer.decode(ids, clean_up_tokenization_spaces=False)
            _ = tokenizer.all_special_ids, tokenizer.unk_token_id, tokenizer.model_input_names
        except RegardError:
            raise
        except Exception as error:  # the library raises bare Exception for whatever is wrong
            line = first_line(error)
            if "UNK" not in line:  # it knows no other words than its own: a text of those can be read
                raise RegardError(f"it cannot read a text: {line}") from error


def check_tokenizer_files(folder: Path) -> None:
    """Check a tokenizer's files by their sizes and how many tokens they add, before the library reads them."""
    for name in ("tokenizer.json", "added_tokens.json", "tokenizer_config.json"):
        file = folder / name
        if not file.exists():
            continue
        content = read_regular(file, most=LARGEST)
        # each added token says whether it is special; of added_tokens.json each entry is one
        count = content.count(b":") if name == "added_tokens.json" else content.count(b'"special"')
        if count > ADDED:
            raise RegardError(f"{str(file)!r}: it adds {count:,} tokens, {ADDED:,} are the most")


@contextmanager
def read_tokenizer_quietly(name: str) -> Iterator[None]:
    """Raise RegardError, with one line of reason, for whatever goes wrong with a tokenizer inside the block."""
    try:
        sys.stderr.flush()
        saved = os.dup(2)
    except (OSError, ValueError, AttributeError):  # there is none
        saved = -1
    try:
        if saved >= 0:  # Rust writes of a panic to standard error, by its number; briefly, for all threads
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), 2)
        with tokenizer_panics_caught():
            yield
    except RegardError as error:
        raise RegardError(f"model {name!r}: its tokenizer cannot be loaded: {error}") from error
    finally:
        if saved >= 0:
            os.dup2(saved, 2)
            os.close(saved)


def check_tokenizer_steps(backend: Any) -> None:
    """Check the steps of a tokenizer of the library `tokenizers`."""
    for names in (("normalizer", "pre_tokenizer"), ("decoder",)):
        steps = (step for name in names for step in _steps_of_tokenizer(backend, name))
        growth = math.prod(map(_growth_in_tokenizer_step, steps))
        if growth > GROWTH:
            raise RegardError(f"its steps may make {growth:,.0f} bytes of one, {GROWTH:,} are the most")
    around = 0
    for step in _steps_of_tokenizer(backend, "post_processor"):
        sizes = {name: len(entry.get("ids", ())) for name, entry in step.get("special_tokens", {}).items()}
        pieces = [*step.get("single", ()), *step.get("pair", ())] if isinstance(step.get("single"), list) else []
        around += sum(sizes.get(piece["SpecialToken"]["id"], 1) for piece in pieces if "SpecialToken" in piece)
    if around > AROUND:
        raise RegardError(f"it puts {around:,} ids round a text, {AROUND:,} are the most")
    padding = backend.padding or {}
    if max(padding.get("length") or 0, padding.get("pad_to_multiple_of") or 0) > PADDING:
        raise RegardError(f"it pads texts to more than {PADDING:,} tokens")
    for what, count, most in (
        ("added tokens", len(backend.get_added_tokens_decoder()), ADDED),
        ("tokens", backend.get_vocab_size(), VOCABULARY),
    ):
        if count > most:
            raise RegardError(f"it has {count:,} {what}, {most:,} are the most")


@contextmanager
def tokenizer_panics_caught() -> Iterator[None]:
    """Raise RegardError for a panic of the Rust library inside the block: it is no Exception, and passes all others."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RegardError(f"the tokenizers library broke down: {first_line(error)}") from None


def _steps_of_tokenizer(backend: Any, name: str) -> Iterator[dict[str, Any]]:
    """What each step of a kind is, those of sequences one by one."""
    part = getattr(backend, name)
    if part is None:
        return
    waiting, count = [json.loads(part.__getstate__())], 0
    while waiting:
        step = waiting.pop()
        inside = next((step[kind] for kind in KINDS if isinstance(step.get(kind), list)), None)
        if inside is not None and step.get("type") == "Sequence":
            waiting += reversed(inside)
            continue
        count += 1
        if count > STEPS:
            raise RegardError(f"its {name} has more than {STEPS} steps")
        yield step


def _growth_in_tokenizer_step(step: dict[str, Any]) -> float:
    """How many bytes a step makes of one at most."""
    kind = step.get("type")
    if kind == "Replace":
        pattern, content = step.get("pattern", {}), len(str(step.get("content", "")).encode())
        length = len(str(pattern.get("String", "")).encode())
        return max(1.0, content / length) if length else 1.0 + content
    if kind == "Precompiled":
        charsmap = step.get("precompiled_charsmap")
        try:
            data = base64.b64decode(bytes(charsmap) if isinstance(charsmap, list) else str(charsmap))
        except ValueError:
            return 1.0
        texts = data[4 + int.from_bytes(data[:4], "little") :]  # each is put in the place of a character
        return float(max(1, *map(len, texts.split(b"\0"))))
    if kind in ("Prepend", "Metaspace"):
        added = len(str(step.get("prepend") or step.get("replacement") or "").encode())
        return float(max(GROWING.get(kind, 1), added // 64))
    return float(GROWING.get(str(kind), 1))
