"""How fast oneDNN's product is against that of torch's BLAS on this machine: python -m benchmarks.products

The first row of numbers is of attention's tiles, and is what `regard.attention.kernels.matmul.SPEEDS` is told by; the
others are of linear maps of models. One thread, both sides in turns, the fastest of all rounds of each: both do nothing
but compute, so that whatever else runs here only adds to a time.
"""

import argparse
import time

import torch

from benchmarks.measure import COLS, ROWS, WIDTH, machine
from regard.attention.kernels import matmul

SHAPES = ((ROWS, COLS, WIDTH), (64, 384, 384), (256, 1536, 384), (512, 768, 768), (1024, 576, 1536))


def ratio(rows: int, columns: int, width: int, rounds: int) -> tuple[float, bool]:
    """How many times as fast oneDNN is for x (rows, width) and y (columns, width), and whether both round alike."""
    x, y = torch.randn(rows, width), torch.randn(columns, width)
    best = {matmul.blas: float("inf"), matmul.onednn: float("inf")}
    for _ in range(rounds):
        for product, so_far in best.items():
            start = time.perf_counter()
            product(x, y)
            best[product] = min(so_far, time.perf_counter() - start)
    return best[matmul.blas] / best[matmul.onednn], torch.equal(matmul.blas(x, y), matmul.onednn(x, y))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    print(machine())
    if not matmul.onednn_works():
        print("this build of torch has no product by oneDNN: torch's own is taken")
        return
    torch.set_num_threads(1)
    torch.manual_seed(0)
    measured = [(shape, *ratio(*shape, rounds)) for shape in SHAPES]
    for (rows, columns, width), faster, alike in measured:
        said = "the same bits" if alike else "bits differ"
        print(f"({rows} × {width}) · ({width} × {columns}): oneDNN {faster:.2f} × as fast, {said}")
    key = (matmul.cpu_kind(), *matmul.library_versions())
    known = matmul.SPEEDS.get(key)
    print(
        f"a row of the table: {key}: {measured[0][1]:.1f}; the table says {known if known is not None else 'nothing'}"
    )
    print(f"taken here: {matmul.linear().__name__} for linear maps, {matmul.product().__name__} for attention's tiles")


if __name__ == "__main__":
    main()
