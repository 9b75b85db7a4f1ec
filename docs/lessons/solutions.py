"""An answer to each exercise of each lesson, as you would type it. `regard lesson 4 --exercises` shows one on `?`."""

SOLUTIONS: dict[str, list[str]] = {
    "1": [
        '"banking"',
        "[0.5, 0.5, 0, 0, 0, 0]",
        '["bank", "bank", "bank", "er"]',
    ],
    "2": [
        '["tuple", "exception"]',
        '"the left and the blick operand are on the blick hand side"',
        "lambda p, q, k: (p / (k * q)).log()",
    ],
    "3": [
        "100",
        "[[cos(3.5), sin(3.5)], [-sin(3.5), cos(3.5)]]",
        "10 * turn(-1)",
    ],
    "5": ["[[-37.5, -75], [0, 0], [0, 0], [0, 0]]"],
}
