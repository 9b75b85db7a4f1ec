"""What was found fits one screen, and every number on it is the summary's; --full has the rest."""

import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.display.panels import Later, made
from regard.display.terminal_parts import plain_lines_of_parts
from regard.explain.texts.summary import layer_looked_at, summarise
from regard.explain.vectors.neutral import Neutral
from regard.explain.wording import called, short_head
from regard.models.control import trace_control
from regard.questions.movement import updates_table
from regard.questions.see.answer import Seen, seen
from regard.questions.see.panels import (
    FULL,
    ROWS,
    attends,
    cosines_table,
    links_table,
    references_table,
    text_strips,
)
from regard.questions.see.sentences import findings, first_link


def printed(found: Seen, width: int = 80, *, everything: bool = False) -> str:
    return "\n".join(plain_lines_of_parts(found.shown(width, 1_000_000, everything=everything), width))


def test_bars_come_first_then_tables_then_sentences(bank, minilm) -> None:
    found = seen(bank, "bank", references=minilm.trace(["money", "river"]))
    out = " ".join(printed(found).split())
    place = out.index("cosine to text 1 text 2")
    assert place > out.index("[SEP]")
    for sentence in found.findings():
        place = out.index(sentence, place)


def test_the_tables_are_the_summarys(bank, minilm) -> None:
    found = seen(bank, "bank", references=minilm.trace(["money", "river"]), control=trace_control(minilm, bank, "bank"))
    summary, lines = found.summary, [line.split() for line in printed(found).splitlines()]
    (river,) = [line for line in lines if line[:1] == ["river"] and "to" in line]
    of = {r.occurrence: r.last_hidden_state for r in summary.references if r.word == "river"}
    among = next(each for each in summary.neutral if each.word == "river")
    ranged = [f"{among.mean[-1]:.2f}", f"({among.low[-1]:.2f}", "to", f"{among.high[-1]:.2f})"]
    assert river[1:] == [*ranged, f"{of['1']:.2f}", "towards", f"{of['2']:.2f}"]


def test_all_of_a_word_in_two_texts(bank, minilm) -> None:
    control, references = trace_control(minilm, bank, "bank"), minilm.trace(["money", "river"])
    out = printed(seen(bank, "bank", references=references, control=control, layer=0, head=3), everything=True)
    assert "\x1b" not in out
    for expected in (
        "  [CLS] write a poem about a man fishing on a river bank . [SEP]",
        "The token embeddings are equal to the last bit",
        "after layer 5      0.85",
        "0          0.27   river 0.25  fishing 0.12  poem 0.08",
        "0       3 ",
        "towards",
    ):
        assert expected in out
    assert re.search(r"money +0\.3\d \(0\.2\d to 0\.\d\d\) +0\.25", out)
    assert "Where both look" not in out  # the tables have all of it


@pytest.fixture(scope="module")
def found(bank, minilm) -> tuple[Seen, ...]:
    """Of two texts and of a long one, with a word and without: made once, for every width."""
    long = minilm.trace("a withdrawal " * 40)
    return seen(bank, "bank", layer=1), seen(bank), seen([long]), seen([long], "withdrawal")


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("width", [60, 80, 140])
def test_nothing_is_wider_than_the_terminal(found, width: int, everything: bool) -> None:
    for each in found:
        assert max(len(line) for line in printed(each, width, everything=everything).splitlines()) <= width


def test_what_is_left_out_is_said(found, bank) -> None:
    out = printed(found[-1])
    assert f"{40 - ROWS} more occurrences are not shown" in out
    assert "lines not shown (82 tokens in all)" in out
    out = printed(found[-1], everything=True)
    assert f"Only pairs with occurrence 1a are shown, of {40 * 39 // 2}." in out


def test_the_overview_marks_rows_that_special_tokens_take(bank) -> None:
    out = printed(seen(bank), everything=True)
    assert "Text 1: what each token attends to most (mean of heads)" in out
    assert "11 bank" in out
    assert "0: river 0.25" in out
    assert "river* 0.08" in out


def test_text_gives_no_orders_to_the_terminal(minilm) -> None:
    trace = minilm.trace("a [bold]river[/bold] \x07\x1b[31m bank")
    for each in (seen([trace], "bank"), seen([trace], "31m"), seen([trace])):
        out = printed(each, everything=True)
        assert "\x1b" not in out
        assert "bold" in out


def test_equal_vectors_of_an_unknown_word_are_no_news(minilm) -> None:
    out = printed(seen(minilm.trace(["a 銀", "the 銀"]), "銀"), everything=True)
    assert "equal to the last bit. The tokenizer does not know the word" in " ".join(out.split())


def test_tokens_that_repeat_have_numbers(minilm) -> None:
    out = printed(seen([minilm.trace("the bank by the bank")], "by"), everything=True)
    assert "bank (2) " in out
    assert "bank (5) " in out
    assert "by (" not in out


def test_texts_beyond_the_fourth_are_for_all(minilm) -> None:
    found = seen(minilm.trace(["a bank"] * 6), "bank")
    lines = ("4  [CLS] a bank [SEP]", "5  [CLS] a bank [SEP]")
    assert [line in printed(found) for line in lines] == [True, False]
    assert lines[1] in printed(found, everything=True)


def test_a_windows_place(minilm) -> None:
    found = seen([minilm.trace("a man on a river bank saw a bank of clouds", window=8)], "bank")
    rows = [line.split() for line in printed(found).splitlines()]
    for label, each in zip(found.summary.labels, found.summary.windows, strict=True):
        of = [label, str(each.text + 1), str(each.window + 1), "of", str(each.windows)]
        assert [*of, str(each.start), "to", str(each.stop - 1)] in rows


def test_an_attention_sink_says_so(minilm, bank) -> None:
    found = seen(bank, "bank")
    own = found.summary.occurrences[0]
    sink: Any = type("Sink", (), {"token": own.tokens[0], "text": "bank", "share": 0.5, "heads": 0.75})()
    found.summary.sinks[0].append(sink)
    out = " ".join(printed(found, everything=True).split())
    assert "“bank” in text 1 is an attention sink" in out
    number = own.tokens[0]
    assert f"“bank” ({number}) is an attention sink (mean weight received: 0.50)" in out
    found.summary.sinks[0].clear()


def test_bars_are_the_weights(bank) -> None:
    summary = seen(bank, "bank").summary
    place = layer_looked_at(summary)
    layer = summary.occurrences[0].attends[place].layer
    first, second = (panel.title for panel in text_strips(summary, "text"))
    assert first == f"Attention from “bank” in layer {layer}, mean of heads (full bar: {FULL:.2f})"
    assert second == ""  # the same is not said twice
    for panel, own in zip(text_strips(summary, "text"), summary.occurrences, strict=True):
        assert panel.values == own.attends[place].weights
        assert panel.full == FULL
        assert list(panel.marked) == own.tokens
        assert [summary.tokens[own.text][n].special for n in panel.special] == [True] * len(panel.special)


def test_without_a_word_there_are_no_bars(bank) -> None:
    for panel, trace in zip(text_strips(seen(bank).summary, "text"), bank, strict=True):
        assert set(panel.values) == {None}
        assert panel.title.endswith(f"{len(trace.tokens)} tokens, including special tokens")


def test_a_first_screen_makes_only_what_it_shows(bank) -> None:
    found = seen(bank, "bank")
    printed(found)
    named = [each.name for each in found.panels() if isinstance(each, Later)]
    assert named[:2] == ["Cosines", "Attends to, text 1"]
    assert [each.name for each in made(found.panels())] == [each.name for each in found.panels()]
    assert found.chosen(["Cosines"])[0].rows[0][1] == found.summary.pairs[0].token_embeddings


def test_the_layer_is_that_of_the_largest_weight_on_another_word(bank) -> None:
    summary = summarise(bank[:1], "bank")
    tokens, place = bank[0].tokens, layer_looked_at(summary)
    words = [n for n, t in enumerate(tokens) if not t.special and t.text.isalnum() and t.text != "bank"]
    rows = [float(bank[0].attention[n].dense().mean(0)[11, words].max()) for n in range(6)]
    assert tokens[11].text == "bank"
    assert place == rows.index(max(rows))


def test_the_head_is_that_of_the_weight_most_beyond_what_others_give(bank) -> None:
    """ "withdrawing" stands four tokens before; "the head before it" gives 0.9 to "a", whatever stands there."""
    link = first_link(summarise(bank[1:], "bank"))
    assert (link.text, link.layer, link.head) == ("withdrawing", 0, 0)
    dense = torch.stack([bank[1].attention[n].dense() for n in range(6)]).double()  # (layers, heads, 14, 14)
    rows = dense[0, 0]
    distance, key = [rows[q, q - 4] for q in range(4, 14) if q != 11], [rows[q, 7] for q in range(14) if q != 11]
    near = [rows[q, q - 4] for q in (7, 8, 9, 10, 12, 13)]
    expected = max(1 / len(rows), *(float(torch.stack(each).mean()) for each in (distance, key, near)))
    assert link.expected == pytest.approx(expected, abs=1e-6)
    assert float(dense[:, :, 11, 10].max()) > 0.9  # the token before


def test_the_word_before_counts_where_it_is_what_the_head_looks_for(minilm) -> None:
    """ "river bank": attention to a neighbour says little, but not where other neighbours get much less."""
    link = first_link(summarise([minilm.trace("She walked along the river bank at dawn.")], "bank"))
    assert (link.text, link.layer, link.head, round(link.weight, 2)) == ("river", 0, 4, 0.83)


def test_how_many_tokens_are_named_elsewhere_changes_nothing(bank) -> None:
    """With --top 1 the one that was kept could be the word itself, so that nothing seemed to be looked at."""
    assert findings(summarise(bank, "bank", top=1)) == findings(summarise(bank, "bank", top=20))


def test_links_are_those_of_every_text(bank) -> None:
    found = seen(bank)
    shown = [(n, link) for n, own in enumerate(found.summary.highlights) for link in own.links[: ROWS // len(bank)]]
    for row, (n, link) in zip(links_table(found.summary).rows, shown, strict=True):
        tokens = found.summary.tokens[n]
        names = [called(link.query, tokens), called(link.key, tokens), short_head(link.layer, link.head)]
        assert row == [str(n + 1), *names, link.expected, link.weight]


def test_the_numbers(bank) -> None:
    summary = seen(bank, "bank").summary
    first, pair = summary.occurrences[0], summary.pairs[0]
    alike = cosines_table(summary, "text", "")
    assert [row[1] for row in alike.rows] == [pair.token_embeddings, *pair.hidden_states]
    by_layer = attends(summary, first, "text", "")
    for row, own in zip(by_layer.rows, first.attends, strict=True):
        assert row[1] == own.special
        assert [value for _, value in row[2].parts[row[2].apart :]] == [share.weight for share in own.top]


def test_shares_of_a_step_sum_to_one(bank) -> None:
    summary = seen(bank, "bank").summary
    panel = updates_table(summary.layer_updates[0], summary, "text", None, "")
    for row, step in zip(panel.rows, summary.layer_updates[0].updates, strict=True):
        assert row[1] == step.length
        assert abs(row[2] + row[3] - 1) < 1e-5
        assert [value for _, value in row[4].parts] == [each.share for each in step.attention.top]


def test_a_range_has_no_negative_zero_and_may_be_unknown(bank, minilm) -> None:
    summary = seen(bank, "bank", references=minilm.trace(["river", "money"])).summary
    ends = Neutral("river", 12, [0.1, 0.34], [0.0, 0.285], [0.2, -0.0001]), Neutral("money", 12, [None], [None], [None])
    rows = references_table(replace(summary, neutral=list(ends))).rows
    assert {row[0]: row[1] for row in rows} == {"river": "0.34 (0.28 to 0.00)", "money": "– (– to –)"}
