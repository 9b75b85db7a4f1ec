"""`regard steer`: both texts side by side, and what is refused before a model is loaded."""

import pytest

from tests.support import own_models

NEEDED = ("--towards", "A man", "--away", "She takes", "--layer", "1")


def test_both_texts_side_by_side(regard_command, tmp_path) -> None:
    own_models.opened("gpt").save(tmp_path / "gpt")
    call = ("steer", "A man is", "--model", "gpt", "--new-tokens", "6", *NEEDED)
    done = regard_command(*call, "--strength", "-100")
    assert done.returncode == 0, done.stderr
    assert "steered: what leaves layer 1 at all positions, by -100 × (the mean state" in done.stdout
    assert "both texts are the same" not in done.stdout
    assert "both texts are the same" in regard_command(*call, "--strength", "0").stdout


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "no text given: regard steer TEXT"),
        (["A man", "--model", "m"], "--towards is needed"),
        (["A man", *NEEDED], "--model is needed: the default model reads, it cannot write"),
        (["A man", "--model", "m", *NEEDED[:4]], "--layer is needed"),
        (["A man", "--model", "m", *NEEDED, "--strength", "much"], "given 'much', needs a number"),
    ],
)
def test_what_is_refused(regard_command, given, says) -> None:
    done = regard_command("steer", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
