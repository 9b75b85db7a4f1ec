"""An answer to each exercise of each lesson, as you would type it. `regard lesson 4 --exercises` shows one on `?`."""

SOLUTIONS: dict[str, list[str]] = {
    "4": ['["money"]', "11.7", "[0, 0.8, 0, 0]"],
    "5": [
        "[[-37.5, -75], [0, 0], [0, 0], [0, 0]]",
        "lambda x, q, k, v: ((x @ q) @ (x @ k).T / k.shape[1] ** 0.5).softmax(-1) @ (x @ v)",
        "20 * torch.eye(5).roll(1, 0)",
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
