"""`regard why` as a process of its own."""

from tests.cli.test_see import refused
from tests.support import make_tiny


def test_rankings(regard_command, minilm, tmp_path) -> None:
    make_tiny(tmp_path / "tiny", minilm)
    result = regard_command("why", "a man on a river bank", "--word", "bank", "--model", "tiny", "--top", "3")
    assert result.returncode == 0, result.stderr
    assert "“bank” in text 1: tokens behind it" in result.stdout
    assert "“bank” in text 1: heads behind it" in result.stdout
    assert "rank correlation with the effect: contribution" in result.stdout
    assert "more left out" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_bad_input(regard_command) -> None:
    refused(regard_command("why"), "no text given")
    refused(regard_command("why", "a bank"), "--word is needed")
    refused(regard_command("why", "a bank", "--word", "bunk"), "the nearest are 'bank'")
    refused(regard_command("why", "a bank", "--word", "bank", "--top", "0"), "--top: given 0")
