"""What is said of a sweep of patches."""

from dataclasses import replace

from regard.explain.wording import number
from regard.questions.patch.answer import PatchSweep
from regard.questions.patch.sentences import reason_of

SWEEP = PatchSweep(
    "hidden_states", "positions", "denoising", "clean text", "bad text", "a number", 1.0, 3.0,
    ("input", 0), ("clean 0", "text 1"), [[1.5, 1.0], [0.5, 3.0]],
)  # fmt: skip


def test_the_furthest_patches_are_named() -> None:
    best, step, outcomes, measured = SWEEP.findings()
    assert best == (
        "The patch of “text” (1) in layer 0 changes most: it goes 100% of the way to the clean text's outcome; of "
        "other places go furthest “clean” (0) entering layer 0 (25%)."
    )
    assert step == (
        "Of all layers and places, layer 0 brings most to “text” (1): from 0% to 100% of the way to the other's "
        "outcome."
    )
    assert outcomes == "A number: 1 without patches, 3 in the other text."
    assert measured == (
        "Denoising: the model reads 'bad text' with hidden_states of 'clean text' put in, one place at a time."
    )


def test_of_heads_the_best_patches_are_named_whatever_their_number() -> None:
    heads = replace(SWEEP, what="head_outputs", by="heads", columns=("head 0", "head 1"), layers=(0, 1))
    assert heads.findings()[0].endswith(
        "; of other heads go furthest head 0 in layer 0 (25%) and head 0 in layer 1 (−25%)."
    )


def test_a_place_is_named_by_both_tokens_where_another_was_put_in() -> None:
    assert "“text” (1, “book” put in) in layer 0" in replace(SWEEP, sources=("clean", "book")).findings()[0]


def test_the_other_direction_and_no_way_to_go() -> None:
    same, _, measured = replace(SWEEP, direction="noising", source=1.0).findings()
    assert measured.startswith("Noising: the model reads 'clean text' with hidden_states of 'bad text'")
    assert "Both texts have the same outcome" in same


def test_what_is_so_by_construction_does_not_lead() -> None:
    """The river's states into the money text: the two cells that were named first were 100 % of any model."""
    shares = [[1.0, 0.0], [0.45, 0.56], [0.47, 0.6], [0.0, 1.0]]
    sweep = replace(
        SWEEP, run=0.0, source=1.0, outcomes=shares, layers=("input", 0, 1, 2), columns=("money 6", "bank 7"),
        given=((0, 0, "elsewhere"), (3, 1, "read")),
    )  # fmt: skip
    found = sweep.findings()
    assert [*found[:2], found[-1]] == [
        "The patch of “bank” (7) in layer 1 changes most: it goes 60% of the way to the clean text's outcome (those "
        "that do so by construction aside); of other places go furthest “money” (6) in layer 1 (47%).",
        "Of all layers and places, layer 0 brings most to “bank” (7): from 0% to 56% of the way to the other's "
        "outcome.",
        "By construction these go all of the way, whatever the model does: “money” (6) entering layer 0, as the texts "
        "hold the same everywhere else there; “bank” (7) in layer 2, as the outcome is read there, after the last "
        "layer.",
    ]
    assert (reason_of(sweep, 0, 0)[:12], reason_of(sweep, 0, 1)) == ("as the texts", "")


def test_where_all_else_did_nothing() -> None:
    sweep = replace(SWEEP, outcomes=[[1.0, 3.0], [1.0, 3.0]], given=((0, 1, "elsewhere"), (1, 1, "elsewhere")))
    found = sweep.findings()
    assert [found[0], found[-1]] == [
        "No patch (those that do so by construction aside) changed the outcome by 0.5% of the way to the other's.",
        "By construction these go all of the way, whatever the model does: “text” (1) in 2 rows, the first “text” (1) "
        "entering layer 0, as the texts hold the same everywhere else there.",
    ]


def test_an_estimate_of_what_is_so_by_construction_is_called_one() -> None:
    sweep = replace(SWEEP, outcomes=[[1.0, 1.0], [1.0, 1.8]], given=((1, 1, "read"),))
    assert sweep.findings()[-1].endswith(
        "“text” (1) in layer 0 (estimated here as 40%), as the outcome is read there, after the last layer."
    )
    assert not any("brings most" in each for each in sweep.findings())


def test_layers_that_do_not_follow_each_other_make_no_step() -> None:
    assert len(replace(SWEEP, layers=(0, 2)).findings()) == 3
    assert len(replace(SWEEP, what="feed_forward", layers=(0, 1)).findings()) == 3


def test_a_fall_back_to_nothing_where_nothing_is_read_is_no_step() -> None:
    """ "Layer 4 brings most to “.” (8): from -83% to 0%": behind the last layer the outcome is read at one place."""
    sweep = replace(
        SWEEP, run=0.0, source=1.0, outcomes=[[-0.83, 0.2], [-0.8, 0.7], [0.0, 1.0]], layers=("input", 0, 1),
        given=((2, 1, "read"),),
    )  # fmt: skip
    assert sweep.findings()[1] == (
        "Of all layers and places from which the outcome is still read, layer 0 brings most to “text” (1): from 20% to "
        "70% of the way to the other's outcome."
    )
    alone = replace(sweep, outcomes=[[-0.83], [0.0]], layers=(0, 1), columns=("clean 0",), given=())
    assert not any("brings most" in each for each in alone.findings())


def test_numbers_below_zero_have_a_true_minus() -> None:
    sweep = replace(SWEEP, run=-1.5, source=-3.0)
    assert sweep.findings()[2] == "A number: −1.5 without patches, −3 in the other text."
    assert "-" not in "".join(sweep.findings()[:2]) + str(sweep.panels()[0].note).replace("cross-attention", "")
    assert number(-0.0001, ".0%") == "0%"
