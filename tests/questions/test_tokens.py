"""What is kept of tokens, and `regard tokens` and `steps` as a person runs them."""

import json
import os
from pathlib import Path

import pytest

from regard.display.panels import Strip, Table
from regard.display.terminal import COLOURS, coloured
from regard.display.terminal_parts import plain_lines_of_parts
from regard.questions.tokens import ROWS, SEVERAL, Tokens, tokens
from tests.said.reading import names_in, numbers_in, shown_with_its_numbers
from tests.support import RIVER, run_all_in_process

TEXT = "He went to the river bank, and to the tokenisation of riverbanks. " * 12


def test_rows_and_json(tmp_path: Path) -> None:
    texts = ["fishing on a riverbank", "a bank, a bank"]
    found = tokens(texts)
    rows = found.rows()
    assert [row["string"] for row in rows if row["text"] == 1][1:-1] == ["fishing", "on", "a", "river", "##bank"]
    for row in rows:
        own = texts[int(row["text"]) - 1][int(row["start"]) : int(row["end"])]
        assert own == str(row["string"]).removeprefix("##") or row["special"]
    assert {row["times"] for row in rows if row["text"] == 2} == {1, 2}
    data = json.loads(json.dumps(found.to_json(tmp_path / "a.json")))
    assert (data["format"], data["tokenizer"], data["texts"]) == ("regard tokens", "the default model", texts)
    assert [[token["id"] for token in each] for each in data["tokens"]] == [
        [row["id"] for row in rows if row["text"] == n] for n in (1, 2)
    ]
    assert data["findings"] == found.findings()


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_one_screen(minilm, width: int, count: int) -> None:
    own = minilm.trace(TEXT).tokens
    lines = plain_lines_of_parts(Tokens("a model", [(TEXT, own)] * count).shown(width), width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 39 or width < 80  # and a last one, which says how to see more
    out = " ".join(" ".join(lines).split())
    shown = min(count, 3)
    more = f"{shown * (len(own) - (ROWS if shown == 1 else SEVERAL) // shown):,} more tokens"
    assert f"Not shown: {more}{' and 4 more texts' * (count == 7)}" in out


def test_each_text_is_whole_in_its_panels() -> None:
    text = "a  b c b"
    found = tokens([text, "c"], "words")
    panels = [panel for panel in found.panels() if not panel.brief]
    assert len({panel.name for panel in panels}) == len(panels) == 6
    strip, table, ids = panels[:3]
    assert isinstance(strip, Strip)
    assert isinstance(table, Table)
    assert isinstance(ids, Table)
    assert "".join(gap + token for gap, token in zip(strip.before, strip.tokens, strict=True)) == text
    assert strip.values == [1, 2, 1, 2]
    assert table.rows[1] == [1, "b", 1, "3–4", 2]
    assert ids.rows == [["0 1 2 1"]]
    assert table.note == "4 tokens, 3 different; 8 characters, 8 bytes"
    assert len(found.plot().axes) == 2


def test_blanks_are_of_no_colour_where_they_are_no_tokens() -> None:
    strip = tokens(["a  b"], "words").panels()[0]
    assert isinstance(strip, Strip)
    line = coloured(strip)
    assert line.plain == "a  b"
    assert [(span.start, span.end, span.style) for span in line.spans] == [
        (0, 1, f"black on {COLOURS[0]}"),
        (3, 4, f"black on {COLOURS[1]}"),
    ]


def test_the_numbers_are_counts(minilm) -> None:
    text = "the bank, the tokenisation of riverbanks"
    answer = Tokens("a model", [(text, minilm.trace(text).tokens)])
    split, count = answer.findings()
    assert (numbers_in(split)[:2], names_in(split)) == (["2", "6"], ["riverbanks"])
    assert "(river ##bank ##s)" in split
    assert numbers_in(count) == ["10", "40"]
    assert all(token in count for token in ("[CLS]", "[SEP]"))
    shown_with_its_numbers(answer, also=[2, 6, 10, 40])


@pytest.mark.parametrize(("text", "numbers"), [("a river", [["2"], ["2", "7"]]), ("a", [["1", "1"]])])
def test_nothing_is_split(minilm, text: str, numbers: list[list[str]]) -> None:
    said = Tokens("a model", [(text, minilm.trace(text).tokens)]).findings()
    assert [numbers_in(sentence) for sentence in said] == numbers
    assert names_in(" ".join(said)) == []


def test_a_special_token_of_the_text_is_not_added(minilm) -> None:
    text = "riverbanks [MASK]"
    split, count, read = Tokens("a model", [(text, minilm.trace(text).tokens)]).findings()
    assert names_in(split) == ["riverbanks"]
    assert numbers_in(count) == ["4", "17"]
    assert "[MASK]" in read
    assert "[MASK]" not in count


def test_several_texts_have_a_sentence_each() -> None:
    answer = tokens(["a b", "b a c", "a", "b b"], "words")
    said = answer.findings()
    assert [numbers_in(sentence) for sentence in said] == [["1", "2", "3", "0", "2"], ["2", "3", "5", "0", "3"],
                                                          ["3", "1", "1"]]  # fmt: skip
    shown_with_its_numbers(answer, also=[0, 1, 2, 3, 5])


def test_words(regard_command) -> None:
    told = regard_command("tokens", "Life is short, eat dessert first", "--tokenizer", "words", "--full")
    assert told.returncode == 0, told.stderr
    assert "Life is short, eat dessert first" in told.stdout
    assert "0 4 5 2 1 3" in told.stdout
    assert "6 tokens, 6 different; 32 characters, 32 bytes" in told.stdout


def test_the_default_model_s(regard_command) -> None:
    told = regard_command("tokens", "fishing on a riverbank", "fishing")
    assert told.returncode == 0, told.stderr
    assert "1 of 4 words split" in told.stdout
    told = regard_command("tokens", "fishing on a riverbank", "fishing", "--full")
    assert "##bank" in told.stdout
    assert "101 5645 2006 1037 2314 9299 102" in told.stdout
    assert "Text 2" in told.stdout


def test_files_of_tokens(regard_command, tmp_path: Path) -> None:
    told = regard_command("tokens", "a  b c b", "--tokenizer", "words", "--csv", "a.csv", "--json", "a.json")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("Tokens of words\na  b c b\n\n")
    assert "4 tokens for 8 characters" in told.stdout
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert [token["id"] for token in data["tokens"][0]] == [0, 1, 2, 1]
    assert len((tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()) == 5


def test_colours_in_a_terminal() -> None:
    import io

    from rich.console import Console

    from regard.display.terminal import COLOURS
    from regard.questions.tokens import tokens

    out = io.StringIO()
    console = Console(force_terminal=True, color_system="truecolor", width=100, file=out)
    console.print(tokens(["a  b c"], "words"))
    line = out.getvalue().splitlines()[1]
    for colour, word in zip(COLOURS, "abc", strict=False):
        red, green, blue = (int(colour[n : n + 2], 16) for n in (1, 3, 5))
        assert f"48;2;{red};{green};{blue}m{word}\x1b[0m" in line
    assert "m  \x1b" in line or "\x1b[0m  \x1b" in line  # blanks between tokens are kept


BAD = [
    (["tokens"], "no text given: regard tokens TEXT"),
    (["tokens", ""], "a text is empty"),
    (["tokens", "a", "--tokenizer", "./none"], "there is no such folder"),
    (["steps"], "no text given"),
    (["steps", RIVER], "--word is needed"),
    (["steps", RIVER, "--word", "boat"], "'boat' is not in the text"),
    (["steps", RIVER, "--word", "bank", "--layer", "6"], "layer 6 is out of range"),
    (["steps", RIVER, "--word", "bank", "--head", "-13"], "or -12 to -1 from the end"),
    (["steps", RIVER, "--word", "bank", "--json", "a.txt"], ".json"),
    (["steps", RIVER, "--word", "bank", "--json", "."], "file name must end in .json"),
]


def test_bad_input(tmp_path: Path) -> None:
    for (arguments, says), (code, out, err) in zip(BAD, run_all_in_process(tmp_path, [a for a, _ in BAD]), strict=True):
        assert code == 2, arguments
        assert out == "", arguments
        assert err.startswith("regard: error: "), arguments
        assert err.count("\n") == 1, arguments
        assert says in err, arguments
    assert os.listdir(tmp_path) == []


def test_steps_add_up_by_hand(regard_command, tmp_path: Path) -> None:
    shown = ["--word", "bank", "--layer", "0", "--head", "3"]
    told = regard_command("steps", RIVER, *shown, "--json", "a.json", "--save", "a.safetensors")
    assert told.returncode == 0, told.stderr
    again = regard_command("steps", "--open", "a.safetensors", *shown, "--json", "b.json")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "b.json").read_bytes() == (tmp_path / "a.json").read_bytes()
    assert "“bank” (token 11) in layer 0, head 3" in told.stdout
    assert max(map(len, told.stdout.splitlines())) <= 80
    every = regard_command("steps", "--open", "a.safetensors", *shown, "--full")
    assert "“bank” (token 11) in layer 0, head 3, step by step" in every.stdout
    assert max(map(len, every.stdout.splitlines())) <= 80
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    (query,) = data["queries"]
    assert query["token"] == 11
    assert data["tokens"][11]["text"] == "bank"
    for n in range(len(data["tokens"])):
        product = sum(a * b for a, b in zip(query["query"], query["key"][n], strict=True))
        assert abs(product - query["products"][n]) < 1e-9
        assert abs(query["scaled"][n] - product * query["scale"]) < 1e-9
        assert abs(query["weights"][n] - query["exponentials"][n] / query["total"]) < 1e-12
    assert abs(sum(query["weights"]) - 1) < 1e-9
    columns = zip(*query["weighted"], strict=True)
    assert all(abs(sum(c) - x) < 1e-9 for c, x in zip(columns, query["context"], strict=True))


def test_every_token_of_a_word_has_its_steps(regard_command) -> None:
    told = regard_command("steps", "He stood on the riverbank.", "--word", "riverbank", "--full")
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("step by step") == 2
