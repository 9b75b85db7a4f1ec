"""The fast path on CPUs: products by oneDNN, everything between them in one Numba pass, one worker thread per task.

`forward` computes output, row maxima and row sums; `statistics` those of the whole matrix. Both walk the same `tiles`.
"""
