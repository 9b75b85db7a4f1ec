"""What is said of a sweep of patches."""

from dataclasses import replace

from regard.explain.causes.patch_sweep import PatchSweep
from regard.explain.findings.patch_sweep import patch_findings

SWEEP = PatchSweep(
    "hidden_states", "positions", "denoising", "clean text", "bad text", "a number", 1.0, 3.0,
    ("input", 0), ("clean 0", "text 1"), [[1.5, 1.0], [0.5, 3.0]],
)  # fmt: skip


def test_the_furthest_patches_are_named() -> None:
    first, outcomes, best = patch_findings(SWEEP)
    assert first == "denoising: 'bad text' is read, and hidden_states of 'clean text' are put in, one place at a time"
    assert outcomes == "a number: 1 without patches, 3 in the other text"
    assert best.endswith("text 1 in layer 0: 100%, clean 0 entering layer 0: 25%, clean 0 in layer 0: -25%")


def test_the_other_direction_and_no_way_to_go() -> None:
    first, _, last = patch_findings(replace(SWEEP, direction="noising", source=1.0))
    assert first.startswith("noising: 'clean text' is read, and hidden_states of 'bad text'")
    assert "both texts have the same outcome" in last
