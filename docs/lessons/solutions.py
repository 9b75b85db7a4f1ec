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
    "4": ["torch.ones(4, 4).tril().triu(-1)", "11.7", "[0, 0.8, 0, 0]"],
    "5": [
        "[[-37.5, -75], [0, 0], [0, 0], [0, 0]]",
        "lambda x, q, k, v: ((x @ q) @ (x @ k).T / k.shape[1] ** 0.5).softmax(-1) @ (x @ v)",
        "20 * torch.eye(5).roll(1, 0)",
    ],
    "6": [
        "[[1, 0], [0, 1], [0, 0], [0, 0]]",
        "divmod(int(weights.diagonal(1, 2, 3).mean(-1).argmax()), 12)",
        "max(heads, key=cosine)",
    ],
    "7": ["[4]", "0.41", "lambda n: 3 * 2 * 2 * 8 * n"],
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
    "11": [
        "10",
        "lambda i, j, w, sinks: (j <= i) & ((i - j < w) | (j < sinks))",
        "lambda l1, y1, l2, y2: torch.sigmoid(l1 - l2) * y1 + torch.sigmoid(l2 - l1) * y2",
    ],
    "12": [
        "3",
        "lambda weights, n: weights.diagonal(1 - n)[1:].mean()",
        "torch.kron(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), 20 * torch.eye(6))",
    ],
}
