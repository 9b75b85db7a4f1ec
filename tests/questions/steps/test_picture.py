"""Every strip of the diagram is the record's own numbers."""

from pathlib import Path

import numpy as np

from regard.display.elements.canvas import all_axes
from regard.explain.causes.block_steps import block_steps
from regard.explain.wording import in_plot
from regard.questions.steps.answer import steps
from regard.questions.steps.picture import ROWS
from tests.support import make_tiny
from tests.support.pictures import framed


def strips(figure) -> dict[str, np.ndarray]:
    """The numbers behind every part of the diagram, by what its name says after the step's number."""
    found = {}
    for axes in all_axes(figure):
        if axes.images:
            name = axes.get_title(loc="left") or axes.get_title() or axes.get_xlabel()
            number, _, what = name.partition("  ")
            assert int(number) == len(found) + 1 or "query" in what or "keys" in what or "enters" in what
            found[what.partition(",")[0].partition(" (")[0]] = np.ma.filled(axes.images[0].get_array(), np.nan)
    return found


def close(drawn, expected) -> None:
    np.testing.assert_allclose(np.atleast_2d(np.asarray(expected)), drawn, rtol=1e-12, atol=1e-15)


def test_every_strip_holds_the_records_numbers(bank) -> None:
    answer = steps(bank[0], "bank", 0, 4)
    figure = answer.plot()
    drawn = strips(figure)
    ((token, found),) = answer.found
    block = block_steps(bank[0], token, 0)
    assert set(drawn) == {
        "enters layer 0", "query of “bank”", "keys", "query · key", "× 1/√32",
        f"exp(s − m)\nm = {float(found.scores.max()):.2f}", f"÷ {found.total:.4g}\n= weight", "values",
        "weight × value", "sum: head 4's context", "the contexts of all 12 heads side by side",
        "by W_O: what attention adds", "+ “bank” as it came: the residual", "= their sum",
        "the norm of it: enters the feed-forward part",
    }  # fmt: skip
    close(drawn["enters layer 0"], block.entering)
    close(drawn["query of “bank”"], found.query)
    close(drawn["keys"], found.key)
    close(drawn["query · key"], found.products[:, None])
    close(drawn["× 1/√32"], found.scaled[:, None])
    close(drawn[f"exp(s − m)\nm = {float(found.scores.max()):.2f}"], found.exponentials[:, None])
    close(drawn[f"÷ {found.total:.4g}\n= weight"], found.weights[:, None])
    close(drawn["values"], found.value)
    close(drawn["weight × value"], found.weighted)
    close(drawn["sum: head 4's context"], found.context)
    close(drawn["the contexts of all 12 heads side by side"], block.joined)
    close(drawn["by W_O: what attention adds"], block.projected)
    close(drawn["+ “bank” as it came: the residual"], block.residual)
    close(drawn["= their sum"], block.total)
    close(drawn["the norm of it: enters the feed-forward part"], block.normed)
    written = [
        text.get_text() for axes in all_axes(figure) if axes.get_title().endswith("= weight") for text in axes.texts
    ]
    assert written == [in_plot(float(weight), 3) for weight in found.weights]
    assert [framed(axes) for axes in all_axes(figure) if framed(axes)] == [[(11, 0)], [(0, 128)]]
    (title,) = [part.get_suptitle() for part in figure.subfigs]
    assert title.startswith("“bank” (token 11) through layer 0, head 4:")
    assert "grey" not in title


def test_what_may_not_be_looked_at_is_grey_and_named(tmp_path, minilm) -> None:
    import regard

    make_tiny(tmp_path, minilm, "llama")
    trace = regard.load(tmp_path).trace("a man on a river bank")
    found = steps(trace, "river", 1, 2)
    figure = found.plot()
    drawn = strips(figure)
    masked = drawn["mask"][:, 0]
    ((_, record),) = found.found
    hidden = record.scores.isinf().numpy()
    assert hidden.any()
    np.testing.assert_array_equal(np.isnan(masked), hidden)
    np.testing.assert_array_equal(masked[~hidden], record.scores.numpy()[~hidden])
    assert not np.isnan(drawn["query · key"]).any()
    assert "grey: may not be looked at" in figure.subfigs[0].get_suptitle()
    assert any("the norm stood before it" in axes.get_title(loc="left") for axes in all_axes(figure))


def test_of_a_long_text_the_tokens_with_the_largest_weights(minilm) -> None:
    trace = minilm.trace("the river bank " + "and the old man at sea " * 12)
    found = steps(trace, "bank", 2, 1)
    figure = found.plot()
    ((_, record),) = found.found
    chosen = sorted(record.weights.argsort(descending=True, stable=True)[:ROWS].tolist())
    close(strips(figure)["values"], record.value[chosen])
    share = float(record.weights[chosen].sum())
    assert f"the {ROWS} of {len(trace.tokens)} tokens with the largest weights, {share:.0%} of them" in (
        figure.subfigs[0].get_suptitle()
    )


def test_a_file_of_several_tokens_and_without_the_rest_of_the_block(bank, tmp_path: Path, monkeypatch) -> None:
    from dataclasses import replace

    monkeypatch.setattr("regard.questions.steps.picture.DRAWN", 2)  # of 6 the picture takes seconds
    found = steps(replace(bank[0], attention_outputs=()), "a", 1, 0)
    assert len(found.found) == 3
    notes = found.draw(tmp_path / "a.png")
    assert notes == ["the first 2 of 3 tokens are drawn"]
    assert (tmp_path / "a.png").stat().st_size > 10_000
    last = all_axes(replace(found, found=found.found[:1]).plot())[-1]
    assert (
        last.get_xlabel() == "how the model goes on is not known exactly: the trace does not hold what stands around it"
    )


def test_the_command_writes_it(regard_command, tmp_path: Path) -> None:
    done = regard_command("steps", "A man on a river bank.", "--word", "bank", "--figure", "steps.svg")
    assert done.returncode == 0, done.stderr
    assert "wrote steps.svg" in done.stdout + done.stderr
    assert "through layer 0, head 0" in (tmp_path / "steps.svg").read_text(encoding="utf-8")
