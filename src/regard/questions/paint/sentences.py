"""Say what was painted, where the heat of the two digits' words is, and whether it is why they stand there."""

from typing import TYPE_CHECKING

from regard.explain.wording import number
from regard.text.quoting import quoted
from regard.train.scene_words import COLUMNS, DIGIT_PLACES, DIGITS, ROWS

if TYPE_CHECKING:
    from regard.questions.paint.answer import Painting

MOST, FEW = 0.75, 0.25  # of the digits: from here on they changed places, and up to here they did


def corner_name(corner: int) -> str:
    """Name a corner of the picture."""
    return f"{ROWS[corner // 2]} {COLUMNS[corner % 2]}"


def of_painting(found: "Painting") -> list[str]:
    """What is where, where the words' heat is, what exchanging and cutting did, and what that says of heat."""
    scene, n = found.scene, found.samples
    names = [DIGITS[digit] for digit in scene.digits]
    at = [corner_name(corner) for corner in scene.corners]
    written, swapped, phrases, *cut = found.trials
    right = written.count(scene.digits)
    said = [
        f"Of {n} pictures, {right[0]} have {names[0]} {at[0]} and {right[1]} have {names[1]} {at[1]}.",
        _pointing(found, names, at),
    ]
    if scene.digits[0] == scene.digits[1]:
        return [*said, f"Both digits are {names[0]}: exchanging them would show nothing."]
    other = (scene.digits[1], scene.digits[0])
    for trial in (swapped, phrases):
        moved = trial.count(other)
        said.append(
            f"With the {trial.name}, {moved[0]} have {names[1]} {at[0]} and {moved[1]} have {names[0]} {at[1]}."
        )
    kept = [cut[slot].count(scene.digits)[slot] for slot in range(2)]
    for slot, trial in enumerate(cut):
        rest = trial.count(scene.digits)[1 - slot]
        said.append(
            f"With the {trial.name}, {kept[slot]} still have {names[slot]} {at[slot]}, and {rest} have "
            f"{names[1 - slot]} {at[1 - slot]}."
        )
    return [*said, _cause(sum(swapped.count(other)) / (2 * n), sum(kept) / (2 * n))]


def _pointing(found: "Painting", names: list[str], at: list[str]) -> str:
    says = []
    for slot, place in enumerate(DIGIT_PLACES):
        corner = found.scene.corners[slot]
        times = int((found.pointing(place) == corner).sum())
        share = number(found.shares(place)[corner])
        says.append(f"{quoted(names[slot])} is looked at most {at[slot]} in {times} of {found.samples} ({share} of it)")
    return f"{says[0]}, {says[1]}."


def _cause(moved: float, kept: float) -> str:
    """What exchanging and cutting say of heat. moved, kept: shares of the digits."""
    if moved >= MOST and kept <= FEW:
        return "The heat of these words is the cause: digits go where their words' keys go, and go with their edges."
    if moved <= FEW and kept >= MOST:
        return "The heat of these words is not the cause: digits stay where they are without it."
    return "The heat of these words is not all of the cause: other words tell of these digits too."
