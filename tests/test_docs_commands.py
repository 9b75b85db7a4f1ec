"""The commands of every page run as printed: a page's own in order, in a folder that holds the files they name.

What a command's page shows as the output of its first command is what that prints. Two things are not as printed:
training takes few steps of a small model, and what blocks hold beside regard (`make`, `pip`, `curl`, `accelerate`) is
not run.
"""

import json
import os
import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

import regard
from regard.text import tokenizers
from regard.text.tiktoken import CACHED
from tests.support import ROOT, SHARED, in_folders, make_tiny
from tests.support.pages import code_blocks, commands, in_shell, pages
from tests.support.real_models import STORIES

pytestmark = pytest.mark.long
PLACES = Path(os.environ.get("TIKTOKEN_CACHE_DIR", "none")), SHARED / "tokenizers"
RANKS = next((place for place in PLACES if (place / CACHED).exists()), None)
NO_RANKS = "the ranks of cl100k_base are neither in TIKTOKEN_CACHE_DIR nor beside the checkout"
# what is said on a machine that is slow, or busy
PROGRESS = re.compile(r"^(\d+ shards, [\d,]+ tokens, [\d,]+ tokens/s.*|.*: about \d+ (s|min) in all)\n", re.M)
EMBED = [["embed", "texts/", "--out", "bank.store", "--where", "word=bank"]]
FIRST = {  # what a page's commands go on with: the runs of docs/training.md, or a store
    **{f"docs/commands/{name}.md": commands("docs/training.md")[:2] for name in ("evolve", "generate")},
    **{f"docs/commands/{name}.md": EMBED for name in ("find", "senses", "shift")},
}
ABSENT = [name for name, there in (("cl100k_base", RANKS is not None), ("stories260K", STORIES.exists())) if not there]
# these models are another here, tiny and random: of what they print the headings of tables are compared
OTHER_MODEL = {f"docs/commands/{name}.md" for name in ("train", "evolve", "translate")}
FEW_STEPS = ["the loss ", "nats per token", "Guessing evenly among", "• The held-out loss"]
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
SMALL = ["layers=3", "d_model=16", "heads=2", "d_hidden=16", "batch=64", "held_out=0.2", "vocabulary=300", "warmup=1"]
BOOK = "Once upon a time there was a man who went to a sunny bank to fish in the old river. " * 40
LETTERS = [
    "Letter {}: we walked along the bank of the river and watched the water",
    "Letter {}: she took her money to the bank and asked for a loan",
    "Letter {}: he fished from the grassy bank near the old mill",
    "Letter {}: the clerk of the bank counted the coins twice",
]
PAIRS = "".join(f"the river bank, {n}\tla rive, {n}\n" for n in range(40))
PAGES = [page for page in pages("sh") if page != "docs/plugins.md"]  # tests/test_plugins.py installs its package
CALLS = [(page, n) for page in PAGES for n in range(len(commands(page)))]


class Call(NamedTuple):
    folder: Path
    arguments: list[str]
    page: str | None  # None: it makes ready what a page needs
    number: int


def same(shown: str, printed: str) -> bool:
    """Whether what is printed begins as a page shows: its words, bars aside, and numbers but for rounding."""
    pattern = re.compile(r"^[▁-▏─]+$")
    ours, theirs = ([word for word in text.split() if not pattern.match(word)] for text in (shown, printed))
    for word, other in zip(ours, theirs, strict=False):
        if NUMBER.sub("0", Path(word).name) != NUMBER.sub("0", Path(other).name):
            return False
        for one, two in zip(NUMBER.findall(Path(word).name), NUMBER.findall(Path(other).name), strict=True):
            a, b = (float(number.replace(",", "")) for number in (one, two))
            if abs(a - b) > 1.01 * 10 ** -len(one.partition(".")[2]) and abs(a - b) > 0.02 * abs(a):
                return False
    return len(ours) <= len(theirs)


def shows(shown: str, printed: str) -> bool:
    """Whether a page shows the beginning of what is printed and, after each line "…", a later part of it."""
    lines, start = printed.splitlines(keepends=True), 0
    for number, part in enumerate(shown.removesuffix("…\n").split("\n…\n")):
        starts = range(start, len(lines)) if number else [0]
        found = next((n for n in starts if same(part, "".join(lines[n:]))), None)
        if found is None:
            return False
        start = found + part.count("\n") + 1
    return True


def headings(shown: str) -> list[str]:
    """The lines that stand above a table's rule."""
    lines = shown.splitlines()
    return [" ".join(line.split()) for line, rule in pairwise(lines) if set(rule.strip()) == {"─"}]


def test_an_output_is_told_from_another() -> None:
    shown = "• “a” gets 0.30 of 1,200 in a\n  row ███▏"
    assert same(shown, "• “a” gets 0.31 of 1,201\n  in a row █▏ and more")
    assert not same(shown, "• “a” gets 0.33 of 1,200 in a row")
    assert not same(shown, "• “b” gets 0.30 of 1,200 in a row")
    assert not same(shown, "• “a” gets 0.30 of 1,200")
    assert shows("a 0.30\n…\nc 1\n", "a 0.31\nb 2\nc 1\nd\n")
    assert not shows("a 0.30\n…\nb 2\n…\na 0.30\n", "a 0.31\nb 2\nc 1\n")
    assert headings("Loss\n  step   loss\n  ─────\n  1 2\n") == ["step loss"]


def quick(arguments: list[str]) -> list[str]:
    """The same; where it trains, with few steps of a small model."""
    if arguments[0] != "train":
        return arguments
    steps = "4" if "--resume" in arguments else "2"
    call = list(arguments)
    if "--steps" in call:
        call[call.index("--steps") + 1] = steps
    else:
        call += ["--steps", steps]
    return [*call, *(word for setting in SMALL for word in ("--set", setting))]


def parse(arguments: list[str]) -> None:
    """Let the command's own parser read the arguments; nothing is run."""
    from regard.cli.main import load_verbs

    group: Any = typer.main.get_command(load_verbs())
    with group.make_context("regard", list(arguments)) as context:
        _, verb, rest = group.resolve_command(context, list(arguments))
        verb.make_context(verb.name, rest, parent=context).close()


@pytest.fixture(scope="module")
def files(minilm: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What commands name and no command makes."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "book.txt").write_text(BOOK, "utf-8")
    shutil.copyfile(ROOT / "docs" / "hooks" / "story.txt", folder / "page.txt")
    (folder / "pairs.tsv").write_text(PAIRS, "utf-8")
    (folder / "net.py").write_text(code_blocks("docs/commands/run.md", "python")[0], "utf-8")
    if STORIES.exists():
        shutil.copytree(STORIES, folder / "stories260K")
    # a tiny random encoder that takes a longer text, and a tiny random translator, in place of real ones
    make_tiny(folder / "my-model", minilm, num_hidden_layers=3, num_attention_heads=6, max_position_embeddings=1500)
    settings = folder / "my-model" / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text("utf-8")) | {"model_max_length": 1500}), "utf-8")
    (folder / "texts").mkdir()
    lines = [{"text": LETTERS[n % len(LETTERS)].format(n), "period": f"19{n % 2}0"} for n in range(40)]
    (folder / "texts" / "letters.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (folder / "texts" / "book.txt").write_text(BOOK[:2000], "utf-8")
    texts = [word for page, n in CALLS for word in commands(page)[n] if "opus-mt-en-fr" in commands(page)[n]]
    words = tokenizers.byte_pairs(texts, size=300, frame="end")
    sizes = regard.TransformerConfig.translator(len(words), words.bos_token_id, d_model=16, heads=2, d_hidden=16)
    regard.load(regard.Transformer(sizes), tokenizer=words).save(folder / "opus-mt-en-fr")
    return folder


@pytest.fixture(scope="module")
def told(files: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], tuple[Call, int, str, str]]:
    """Each command that is run, with its exit code, its output and its error; all in one process."""
    calls: list[Call] = []
    for page in PAGES:
        folder = tmp_path_factory.mktemp("page")
        shutil.copytree(files, folder, dirs_exist_ok=True)
        calls += [Call(folder, quick(c), None, n) for n, c in enumerate(FIRST.get(page, []))]
        calls += [Call(folder, quick(c), page, n) for n, c in enumerate(commands(page))]
    calls = [call for call in calls if not set(ABSENT) & set(call.arguments)]
    environment = {"COLUMNS": "80"} | ({} if RANKS is None else {"TIKTOKEN_CACHE_DIR": str(RANKS)})
    done, found = in_folders([(call.folder, call.arguments) for call in calls], **environment), {}
    for call, (code, output, error) in zip(calls, done, strict=True):
        assert call.page is not None or code == 0, (call, error)
        if call.page is not None:
            found[call.page, call.number] = call, code, output, error
    return found


def test_commands_run(told: dict[tuple[str, int], tuple[Call, int, str, str]]) -> None:
    """One test for all: they run in one process, and every worker that got one of several tests ran them all again."""
    assert told
    said = {place: (code, PROGRESS.sub("", error)) for place, (_, code, _, error) in told.items()}
    failed = {f"{page}, command {n}": (code, error) for (page, n), (code, error) in said.items() if code or error}
    assert failed == {}
    for page, number in told:
        if page.startswith("docs/commands/") and number == 0:
            shown, printed = code_blocks(page, "text")[0], told[page, 0][2]
            if page in OTHER_MODEL:
                lines = headings(shown) if "train" not in page else FEW_STEPS  # so short a run has another table
                assert lines
                for text in (shown, printed):
                    squeezed = " ".join(text.split())
                    assert [line for line in lines if line not in squeezed] == [], (page, printed)
            else:
                # rounding differs between machines
                shown, printed = (re.sub(r"\d\.\de-\d\d", "0e-0", text) for text in (shown, printed))
                assert shows(shown, printed), f"{page}: it prints\n{printed}"
    for call, *_ in told.values():
        for option, file in zip(call.arguments, call.arguments[1:], strict=False):
            if option in {"--figure", "--json", "--save", "--csv"}:
                assert (call.folder / file).stat().st_size > 500, (call.page, option, file)
    left = [(page, number) for page, number in CALLS if (page, number) not in told]
    for page, number in left:
        parse(commands(page)[number])
    if left:
        pytest.skip(f"all others ran; of {len(left)} the options were read: no {', '.join(ABSENT)} ({NO_RANKS})")


@pytest.mark.parametrize("page", pages("sh"))
def test_launched_commands_are_read(page: str) -> None:
    for program, *arguments in in_shell(page):
        if program == "accelerate":
            parse(arguments[arguments.index("-m") + 2 :])
            assert arguments[arguments.index("-m") + 1] == "regard"
