"""An answer to each exercise of each lesson, as you would type it. `regard lesson 4 --exercises` shows one on `?`."""

SOLUTIONS: dict[str, list[str]] = {
    "5": ["[[-37.5, -75], [0, 0], [0, 0], [0, 0]]"],
    "8": [
        "[(48, 16), (32, 16), (32, 20)]",
        "lambda ids: (ids != 0)[:, None]",
        "[[9, 0, 0], [0, 0, 9], [0, 9, 0], [0, 0, 0]]",
    ],
    "9": ["5", "'x ' * 200", "'Put your cash in the bank.'"],
    "10": [
        "lambda weights: weights[..., 2].mean((0, 1, 2)).view(4, 4)",
        "4",
        "[[1, 0], [1, 0], [1, 0]]",
    ],
}
