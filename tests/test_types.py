"""The public API as a type checker sees it: the README's code, what `trace` returns, and where `Any` may stand."""

import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import regard
from regard.generation.generator import Generated
from regard.generation.settings import CHECKS, OTHERS
from regard.models.call_options import GenerateOptions, TraceOptions
from regard.models.model import Model
from regard.trace.trace import PairTrace, Trace
from tests.support import ROOT

REVEALED = """
import regard
model = regard.load()
reveal_type(model.trace("a").attention[0])  # LabelledMap
reveal_type(model.trace("a").attention[0]["a", "b"])  # Tensor
reveal_type(model.trace("a")["a"])  # Tensor
reveal_type(model.trace("a"))  # Trace
reveal_type(model.trace(["a", "b"]))  # list[Trace]
reveal_type(model.trace("a", target="b"))  # PairTrace
reveal_type(model.trace("a", target_ids=[1]))  # PairTrace
reveal_type(model.trace("a", window=5))  # WindowedTrace
reveal_type(model.trace(ids=[1]))  # Trace
reveal_type(model.generate("a", new_tokens=3, top_k=2))  # Generated
reveal_type(model.generate(["a"]))  # list[Generated]
reveal_type(model.why(model.trace("a"), "a"))  # Why
reveal_type(model.trace("a").hidden_states[0])  # Tensor
reveal_type(regard.open("a"))  # Trace | PairTrace | list[Trace | PairTrace]
reveal_type(regard.TransformerConfig.gpt2().as_json())  # dict[str, str | int | float | bool | None]
reveal_type(regard.textbook.word_tokens("a", {}))  # list[Token]
"""

# What `mypy --strict` asks of a file, beyond this project's own settings.
STRICT = ", ".join(
    (
        "disallow-any-generics",
        "disallow-subclassing-any",
        "disallow-untyped-calls",
        "disallow-untyped-defs",
        "disallow-untyped-decorators",
        "warn-return-any",
        "extra-checks",
    )
)

# Parameters that are objects of other libraries, or what these read.
THIRD_PARTY = {
    ("Model.__init__", "model"),
    ("Model.__init__", "tokenizer"),
    ("check", "inputs"),
    ("check", "model"),  # a Model, or what `load` opens
    ("Model.trace", "inputs"),  # tensors by the names of a forward's arguments
    ("Model.generate", "options"),  # transformers' own; `GenerateOptions` has their types
    ("TransformerConfig.from_json", "content"),  # values of JSON
    ("load", "source"),  # a transformers model, a folder, a name
    ("load", "tokenizer"),
    ("Model.__init__", "image_processor"),
    ("Model.trace", "images"),  # files, Pillow images, arrays
    ("load", "processor"),
    ("load_pipeline", "source"),  # a pipeline of diffusers, a folder
}
ANY_INDEX = {("AttentionMap.__getitem__", "index")}  # whatever indexes a tensor
ANY_SIZES = {(f"TransformerConfig.{name}", "changes") for name in ("bert", "gpt2", "llama", "nanogpt", "translator")}
ANY_RULE = {(f"{name}.forward", "rule") for name in ("SelfAttention", "CrossAttention")}  # of `attend`
ANY_SETS = {("Model.ablated", "sets")}  # what is no intervention is refused by name
# Names that annotations have while they are checked only, for what is slow to import or may not be installed.
SHOWN = (
    "Answer", "Axes", "AttentionWidget", "Console", "ConsoleOptions", "DataFrame", "Figure", "HeadMeans",
    "RenderableType", "Senses", "Page", "Attribution", "TokenAttribution", "HeadAttribution", "PatchSweep",
    "Image", "LlavaProcessor", "ScoreSources", "Lens", "Evolution", "Steps", "Generation",
)  # fmt: skip
LATE = {
    "PreTrainedTokenizerFast": object, "Encoding": object, "Model": Model, "regard": regard, "Seen": object,
    **dict.fromkeys(SHOWN, object),
}  # fmt: skip


def checked(tmp_path: Path, code: str) -> str:
    """What mypy says of some code of a user's, in a folder of its own."""
    file = tmp_path / "user.py"
    file.write_text(f"# mypy: {STRICT}\n{code}", encoding="utf-8")
    # Most of the time is the reading of torch and of the package, which `make lint` has just done: with its settings,
    # from its folder, its cache serves. What is stricter is said in the file alone.
    command = [sys.executable, "-m", "mypy", str(file)]
    settings = {**os.environ, "MYPYPATH": "src"}
    return subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False).stdout


def test_the_readmes_code_is_typed(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert blocks
    assert "Success" in (said := checked(tmp_path, "\n".join(blocks))), said


def test_what_a_users_editor_knows(tmp_path: Path) -> None:
    code = f'{REVEALED}model.trace("a", layres=3)\n'
    said = checked(tmp_path, code)
    errors = [line for line in said.splitlines() if "error:" in line]
    assert "Unexpected keyword argument" in "".join(errors)
    last = 1 + len(code.splitlines())  # below the line of settings
    assert {line.split(":")[1] for line in errors} == {str(last)}, said
    found = [re.sub(r"[\w.]+\.(\w+)", r"\1", line) for line in re.findall(r'Revealed type is "(.*)"', said)]
    assert found == re.findall(r"#\s(.*)$", REVEALED, re.M)


def functions(name: str, thing: Any) -> Iterator[tuple[str, Any]]:
    """The public functions of a name: itself, or a class's methods and properties."""
    if inspect.isfunction(thing):
        yield name, thing
    if not inspect.isclass(thing):
        return
    for own, value in vars(thing).items():
        if own.startswith("_") and own not in ("__init__", "__call__", "__getitem__"):
            continue
        value = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
        if inspect.isfunction(value):
            yield f"{name}.{own}", value


def public() -> Iterator[tuple[str, Any]]:
    """The functions and methods of the public names."""
    named = {name: getattr(regard, name) for name in regard.__all__}
    named |= {each.__name__: each for each in (Model, PairTrace, Generated)}
    for name, thing in named.items():
        yield from functions(name, thing)


def documented() -> Iterator[tuple[str, Any]]:
    """The functions and methods of every module that docs/api describes."""
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
    for name in re.findall(r"^::: ([\w.]+)$", pages, re.M):
        module = importlib.import_module(name)
        for own, thing in vars(module).items():
            if not own.startswith("_") and getattr(thing, "__module__", None) == name:
                for function_name, function in functions(own, thing):
                    yield f"{name}.{function_name}", function


def holds_any(hint: Any) -> bool:
    """Whether a type is Any, or one of its parts is."""
    if isinstance(hint, list):  # the arguments of a Callable
        return any(map(holds_any, hint))
    return hint is Any or any(map(holds_any, get_args(hint)))


def test_parts_of_a_type_are_looked_at() -> None:
    assert all(map(holds_any, (Any, list[Any], dict[str, tuple[int, Any]], Callable[[Any], int], int | list[Any])))
    assert not any(map(holds_any, (None, int, list[int], Callable[[int], str], Callable[..., str], Trace | None)))


def test_no_public_function_returns_any() -> None:
    found = dict((*public(), *documented()))
    assert len(found) > 200
    for name, function in found.items():
        hints = get_type_hints(function, localns=LATE)
        assert "return" in hints or name.endswith("__init__"), name
        assert not holds_any(hints.get("return")), name


def test_any_stands_only_where_it_is_named() -> None:
    parameters = set()
    for name, function in public():
        for parameter in inspect.signature(function).parameters.values():
            if re.search(r"\bAny\b", str(parameter.annotation)):
                parameters.add((name, parameter.name))
            assert parameter.annotation is not parameter.empty or parameter.name in ("self", "cls"), (name, parameter)
    assert parameters == THIRD_PARTY | ANY_INDEX | ANY_SIZES | ANY_RULE | ANY_SETS
    assert (Path(regard.__file__).parent / "py.typed").exists()


def test_the_options_of_overloads_are_those_of_the_methods() -> None:
    own = set(inspect.signature(Model.generate).parameters) - {"self", "prompt", "ids", "options"}
    assert set(GenerateOptions.__annotations__) == own | set(CHECKS) | set(OTHERS)
    assert set(TraceOptions.__annotations__) < set(inspect.signature(Model.trace).parameters)
