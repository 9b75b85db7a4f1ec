"""What several tests need: the two sentences, and tiny random models of any family."""

import contextlib
import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("REGARD_SHARED", ROOT.parent / "shared"))  # models and data beside the checkout

RIVER = "Write a poem about a man fishing on a river bank."
MONEY = "Write a poem about a man withdrawing money from a bank."


def make_tiny(folder: Path, minilm: Any, kind: str = "bert", **changes: Any) -> Any:
    """A tiny random model of a family, saved with the default model's tokenizer; returns the model."""
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {
        "vocab_size": minilm.tokenizer.vocab_size,
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 37,
        "max_position_embeddings": 31,
    }
    if kind == "distilbert":
        sizes |= {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 37}
        del sizes["hidden_size"], sizes["num_hidden_layers"], sizes["num_attention_heads"]
    config = transformers.AutoConfig.for_model(kind, **(sizes | changes))
    model = transformers.AutoModel.from_config(config).eval()
    model.save_pretrained(folder)
    minilm.tokenizer.save_pretrained(folder)
    return model


@cache
def default_model() -> Any:
    """The embedded default model, loaded once a session."""
    import regard

    return regard.load(device="cpu")


def run_in_process(folder: Path, arguments: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in the test's own process, as a person in that folder would see it through a pipe.

    Most of a process of its own is its imports; so such processes are for what they differ in: the shell, terminals,
    encodings, signals, what is imported when. The default model is loaded once a session, other models by each call.
    """
    import regard
    from regard.cli.main import main
    from regard.models.load import load

    assert regard.load  # the package keeps the function that it is first asked for: not the one below

    def loaded(source: Any = None, **options: Any) -> Any:
        usual = source is None and options in ({}, {"dtype": "auto"})
        return default_model() if usual else load(source, **options)

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    code: Any = None
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(streams[0]),
            contextlib.redirect_stderr(streams[1]),
            mock.patch.dict(os.environ, environment),
            mock.patch("regard.models.load.load", loaded),
        ):
            main([str(each) for each in arguments])
    except SystemExit as left:
        code = left.code
    finally:
        signal.signal(signal.SIGINT, interrupt)
    out, err = (_written(stream) for stream in streams)
    return subprocess.CompletedProcess(list(arguments), code, out, err)


def run_all_in_process(folder: Path, calls: Sequence[Sequence[str]]) -> list[tuple[int, str, str]]:
    """(exit code, stdout, stderr) of many calls of the command, in the test's own process."""
    done = [run_in_process(folder, call) for call in calls]
    return [(each.returncode, each.stdout, each.stderr) for each in done]


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]


MANY = """
import contextlib, io, json, os, sys
from regard.cli.main import main
told = []
for folder, arguments in json.load(sys.stdin):
    out, err, code = io.StringIO(), io.StringIO(), None
    os.chdir(folder)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as left:
            code = left.code
    told.append([code, out.getvalue(), err.getvalue()])
    heavy = set(sys.argv[1].split(",")) & set(sys.modules)
    assert not heavy, (arguments, sorted(heavy), err.getvalue())
print(json.dumps(told))
"""


def in_one_process(
    folder: Path, calls: list[list[str]], watch: str = "", **environment: str
) -> list[tuple[int, str, str]]:
    """(exit code, stdout, stderr) of many calls of the command, in one process: most of a call is its imports.

    watch: modules, separated by commas, none of which may be imported by any of the calls.
    """
    return in_folders([(folder, call) for call in calls], watch, **environment)


def in_folders(
    calls: Sequence[tuple[Path, list[str]]], watch: str = "", **environment: str
) -> list[tuple[int, str, str]]:
    """The same of calls that are each made in a folder of their own."""
    asked = json.dumps([(str(folder), call) for folder, call in calls])
    done = subprocess.run(
        [sys.executable, "-c", MANY, watch], input=asked, env={**os.environ, **environment}, capture_output=True,
        text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def in_text(tokens: Sequence[Any]) -> list[Any]:
    """Give tokens made by hand a text that has them at their places."""
    text = ""
    for token in tokens:
        text = text.ljust(token.start) + token.text.removeprefix("##")[: token.end - token.start]
    return [dataclasses.replace(token, source=text) for token in tokens]
