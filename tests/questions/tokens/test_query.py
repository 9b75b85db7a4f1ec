"""`regard tokens` and `steps` as a person runs them."""

import json
import os
from pathlib import Path

from tests.support import RIVER, run_all_in_process


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

    from regard.display.terminal_tables import COLOURS
    from regard.questions.tokens.answer import tokens

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
    (["tokens", "a", "--ranks", "x"], "--ranks needs --tokenizer cl100k_base"),
    (["tokens", "a", "--tokenizer", "cl100k_base", "--ranks", "none"], "cannot be read"),
    (["steps"], "no text given"),
    (["steps", RIVER], "--word is needed"),
    (["steps", RIVER, "--word", "boat"], "'boat' is not in the text"),
    (["steps", RIVER, "--word", "bank", "--layer", "6"], "layer 6 is out of range"),
    (["steps", RIVER, "--word", "bank", "--head", "-13"], "or -12 to -1 from the end"),
    (["steps", RIVER, "--word", "bank", "--json", "a.txt"], ".json"),
    (["steps", RIVER, "--word", "bank", "--json", "."], "ending needs to be .json"),
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
