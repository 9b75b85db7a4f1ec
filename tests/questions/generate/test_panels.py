"""What was written fits one screen, with a bar under each token that is as high as its probability."""

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from regard.display.panels import Shares, Strip, Table
from regard.display.terminal_parts import plain_lines_of_parts
from regard.explain.logits import Candidate
from regard.explain.texts.highlights import Link
from regard.generation.generator import Generated
from regard.questions.generate.answer import generated
from tests.said.reading import names_in, numbers_in, shown_with_its_numbers, shows
from tests.support import in_text

TOP = 8


@pytest.mark.parametrize("width", [60, 80, 140])
def test_one_screen(done: Generated, width: int) -> None:
    found = generated(done)
    lines = plain_lines_of_parts(found.shown(width, TOP), width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    assert lines[1].startswith("a bank of")
    assert set(lines[2].strip()) <= set(" ▁▂▃▄▅▆▇█")
    if len(done.trace.tokens) - done.start > TOP:
        assert any("more rows (see" in line for line in lines)
    least = min(each.probability for each in found.plain.how.tokens)
    assert any(f"  {least:.2f}  " in line for line in lines)


def test_all_has_the_whole_text_first(done: Generated) -> None:
    lines = plain_lines_of_parts(generated(done).shown(80, 1000, everything=True), 80)
    told = " ".join(" ".join(lines).split())
    assert told.startswith("Probability of each written token")
    assert "Not shown" not in told


def test_a_bar_under_what_was_written_alone(done: Generated) -> None:
    strip = generated(done).panels()[0]
    assert isinstance(strip, Strip)
    assert "".join(strip.tokens) == done.text
    assert [value is None for value in strip.values] == [n < done.start for n in range(len(strip.tokens))]


def test_the_least_likely_stand_first(done: Generated) -> None:
    found = generated(done)
    (table,) = (panel for panel in found.panels() if panel.name == "Least likely tokens")
    assert isinstance(table, Table)
    assert [row[2] for row in table.rows] == sorted(each.probability for each in found.plain.how.tokens)


def test_the_prompt_by_whole_words(done: Generated) -> None:
    found = generated(done)
    received = found.plain.how.received
    tokens = [*found.plain.tokens]
    end = tokens[0].end  # where the second goes on as a piece of the first
    tokens[1] = replace(tokens[1], text=f"##{tokens[1].text}", start=end, end=end + len(tokens[1].text))
    pieced = replace(found, plain=replace(found.plain, tokens=in_text(tokens)))
    for each, words in ((found, [[0], [1], [2]]), (pieced, [[0, 1], [2]])):
        (strip,) = (panel for panel in each.panels() if panel.name == "Attention to the prompt")
        assert isinstance(strip, Strip)
        assert strip.values == pytest.approx([sum(received[n] for n in word) for word in words])
        assert len(strip.tokens) == len(words)
        assert strip.full == max(value for n, value in enumerate(strip.values) if n not in strip.special)
        assert f"full bar: {strip.full:.2f}" in strip.title
    sunk = replace(found, plain=replace(found.plain, how=replace(found.plain.how, sink_tokens=[0])))
    (strip,) = (panel for panel in sunk.panels() if panel.name == "Attention to the prompt")
    assert isinstance(strip, Strip)
    assert strip.special == [0]
    assert "attention sinks are in grey" in strip.note


def test_blank_and_empty_tokens_are_named_among_the_others_likely(done: Generated) -> None:
    found = generated(done)
    first = found.plain.how.tokens[0]
    likely = [Candidate(-1, "", 0.3), Candidate(-2, "\n", 0.2), Candidate(-3, " of", 0.1)]
    how = replace(found.plain.how, tokens=[replace(first, likeliest=likely)])
    (table,) = (
        each for each in replace(found, plain=replace(found.plain, how=how)).panels() if each.name.startswith("Least")
    )
    assert isinstance(table, Table)
    others = table.rows[0][3]
    assert isinstance(others, Shares)
    assert list(others.parts) == [("a blank", 0.3), ("a line break", 0.2), ("“of”", 0.1)]


def test_nothing_was_written(done: Generated) -> None:
    found = generated(done)
    none = replace(found.plain, given="a bank of", new="", how=replace(found.plain.how, tokens=[]),
                   tokens=found.plain.tokens[:3])  # fmt: skip
    empty = replace(found, plain=none)
    lines = plain_lines_of_parts(empty.shown(80), 80)
    assert lines[1] == "a bank of"
    assert "wrote 0 tokens after a prompt of 3" in " ".join(lines)
    assert len(empty.findings()) == 1
    assert isinstance(empty.plot(), Figure)
    assert empty.rows() == []


def test_the_sentences_name_the_most_unusual_link_and_the_least_likely_token(done: Generated) -> None:
    answer = generated(done)
    shown_with_its_numbers(answer)
    how = answer.plain.how
    least = min(how.tokens, key=lambda token: token.probability)
    (sentence,) = answer.findings()  # nothing stands out in even attention
    shows(numbers_in(sentence)[0], least.probability)
    link = Link(1, 0, least.token - 1, "", 2, "", 0.625, 0.126, 1.0)
    linked = [replace(token, links=[link] if token is least else []) for token in how.tokens]
    attended, _ = replace(answer, plain=replace(answer.plain, how=replace(how, tokens=linked))).findings()
    assert names_in(attended)[-1] == answer.plain.tokens[2].text.strip()
    assert numbers_in(attended)[-3:] == ["0.62", "1", "0"]
