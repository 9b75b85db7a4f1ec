"""The fast path on CPUs: products by oneDNN, everything between them in one Numba pass, one worker thread per task.

`forward` computes output and normaliser, `statistics` the figures of the whole matrix. Both walk the tiles of `tiles`.
"""
