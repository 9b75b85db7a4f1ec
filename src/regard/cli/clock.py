"""How long the command has been at work, its imports and the model's loading included."""

import time

_began = [time.perf_counter()]


def start_command_clock() -> None:
    """Count from now on."""
    _began[:] = [time.perf_counter()]


def seconds() -> float:
    """Seconds since the start."""
    return time.perf_counter() - _began[0]
