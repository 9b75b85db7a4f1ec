"""How fast oneDNN's product is against that of torch's BLAS on this machine: python -m benchmarks.products

It is of attention's tiles, and what `regard.attention.kernels.matmul.SPEEDS` is told by. One thread, both sides in
turns, the fastest of all rounds of each: both do nothing but compute, so that whatever else runs here only adds to a
time.
"""

import argparse
import time

import torch

from benchmarks.measure import COLS, ROWS, WIDTH, machine
from regard.attention.kernels import matmul


def ratio(rounds: int) -> tuple[float, bool]:
    """How many times as fast oneDNN is for a tile, and whether both round alike."""
    x, y = torch.randn(ROWS, WIDTH), torch.randn(COLS, WIDTH)
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
    faster, alike = ratio(rounds)
    said = "the same bits" if alike else "bits differ"
    print(f"({ROWS} × {WIDTH}) · ({WIDTH} × {COLS}): oneDNN {faster:.2f} × as fast, {said}")
    key = (matmul.cpu_kind(), *matmul.library_versions())
    known = matmul.SPEEDS.get(key)
    print(f"a row of the table: {key}: {faster:.1f}; the table says {known if known is not None else 'nothing'}")
    print(f"taken here: {matmul.product().__name__}")


if __name__ == "__main__":
    main()
