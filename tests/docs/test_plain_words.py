"""The project's prose is plain English: patterns that make people read a sentence twice are rare in it."""

import importlib
import pkgutil
import re
from typing import Any

import pytest
import typer

import regard.questions
from regard.cli.help import TABLE
from regard.cli.main import load_verbs
from tests.said.reading import MAX_WORDS
from tests.support import ROOT

PATTERNS = {  # matches allowed per 1,000 words, the expression, and an example. Limits: the most in five other projects
    "what … as a noun": (
        0.7, r"\bwhat (?:is|are|was|were|has|it|they|the|an?|one|each|no|another|does|did|can(?:not)?|comes|you)\b",
        "regard shows what the layer did",
    ),
    "one, ones": (3.9, r"\bones?\b", "the other ones"),
    "semicolon": (3.4, r";", "it is short; it is old"),
    "where meaning if": (0.6, r"\bwhere (?:a|an|the|there|no|it|they|one|both|this|these|that)\b", "where no head"),
    "stands, lies": (0.1, r"\b(?:stands?|stood|lies?|lay)\b(?! for)", "the note stands below"),
    "beside": (0.1, r"\bbeside\b", "the number beside it"),
    "told, tells": (0.5, r"\b(?:tells?|told)\b", "the table tells more"),
    "of its own": (0.1, r"\bof (?:its|their|your|his|her|one's) own\b|\bof yours\b", "a file of its own"),
    "opens with Of": (0.05, r"(?:^|(?<=[.:!?] ))(?-i:Of) (?!course)", "It ends. Of two texts, it reads both"),
    "a row a head": (
        0.05,
        r"\b(?:an?|one) \w+ an? (?:layer|head|token|word|row|line|text|cell|number|query|key|vector|step|shard|time)\b",
        "it prints a row a head",
    ),
    "held against": (0.05, r"\bh(?:e|o)lds? (?:\w+ ){0,4}against\b", "it is held against the model"),
}  # fmt: skip
YOU = 8.0  # at least, per 1,000 words of the docs
LONG, LONG_PERCENT = 30, 12  # words of a sentence, and how many percent of sentences may have more
COMMANDS: dict[str, Any] = typer.main.get_command(load_verbs()).commands  # type: ignore[attr-defined]
NO_PROSE = {"families.md", "families_table.md"}  # written by a program


def prose(markdown: str) -> list[str]:
    """The paragraphs and list items of a page, without code, tables, headings and images."""
    text = re.sub(r"^```.*?^```|<!--.*?-->|\A---\n.*?\n---\n", "\n", markdown, flags=re.M | re.S)
    text = re.sub(r"^\s*(?:[|#!<].*|:::.*|\$\$.*)$", "\n", text, flags=re.M)
    text = re.sub(r"^\s*(?:[-*•]|\d+\.) ", "\n\n", text, flags=re.M)
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", re.sub(r"`+[^`\n]+`+", "x", text))
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def lessons() -> list[str]:
    cells = [re.split(r"^# %%", file.read_text("utf-8"), flags=re.M) for file in sorted((ROOT / "docs").rglob("*.py"))]
    kept = [cell.removeprefix(" [markdown]") for file in cells for cell in file if cell.startswith(" [markdown]")]
    return [part for cell in kept for part in prose(re.sub(r"^# ?", "", cell, flags=re.M))]


def help_texts() -> list[str]:
    options = [each for command in COMMANDS.values() for each in command.params]
    defaults = [each.show_default for each in options if isinstance(each.show_default, str)]
    texts = [*(command.help for command in COMMANDS.values()), *(each.help for each in options), *defaults]
    return [part for text in [*texts, *re.findall("  (.+)", TABLE)] for part in prose(text or "")]


def templates() -> dict[str, list[str]]:
    """The sentence templates of every question that has them, by module, each field as one word."""
    found = {}
    for module in pkgutil.walk_packages(regard.questions.__path__, "regard.questions."):
        table = getattr(importlib.import_module(module.name), "TABLE", [])
        found[module.name] = [re.sub(r"\{[^{}]*\}", "x", text) for group in table for text, _ in group]
    return {name: texts for name, texts in found.items() if texts}


def pages() -> list[str]:
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [part for file in files if file.name not in NO_PROSE for part in prose(file.read_text("utf-8"))]


GROUPS = {
    "docs": pages, "lessons": lessons, "help": help_texts,
    "changelog": lambda: prose((ROOT / "CHANGELOG.md").read_text("utf-8")),
    "answers": lambda: [text for texts in templates().values() for text in texts],
}  # fmt: skip


@pytest.mark.parametrize("group", GROUPS)
def test_patterns_are_rare(group: str) -> None:
    parts = GROUPS[group]()
    words = sum(len(part.split()) for part in parts)
    for name, (limit, pattern, _) in PATTERNS.items():
        found = [(part, hit.start()) for part in parts for hit in re.finditer(pattern, part, re.I)]
        hits = [f"…{part[max(0, start - 40) : start + 60]}…" for part, start in found]
        assert len(hits) <= max(2, limit * words / 1000), f"{name}, in {words:,} words:\n" + "\n".join(hits)
    lengths = [len(sentence.split()) for part in parts for sentence in re.split(r"(?<=[.!?]) ", part)]
    assert sum(length > LONG for length in lengths) <= LONG_PERCENT / 100 * len(lengths)
    if group in ("docs", "lessons"):
        assert sum(len(re.findall(r"\byou(?:rs?)?\b", part, re.I)) for part in parts) >= YOU * words / 1000


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_finds_its_example(name: str) -> None:
    assert [each for each, (_, pattern, _) in PATTERNS.items() if re.search(pattern, PATTERNS[name][2], re.I)] == [name]


def test_templates_are_short_sentences() -> None:
    found = templates()
    assert len(found) >= 10, f"only these have a TABLE of sentences: {sorted(found)}"
    assert [text for texts in found.values() for text in texts if len(text.split()) > MAX_WORDS or ";" in text] == []
