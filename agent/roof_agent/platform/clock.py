"""The clock as it really is: additions that wait for one another, one a cycle."""

from __future__ import annotations

import functools

from roof_agent.errors import RoofError
from roof_agent.kernels import Backend, Request, load

# Some milliseconds: enough for 0.1 %, and nothing that warms the board up.
_REPETITION_SECONDS = 0.001
_REPETITIONS = 5
_LEAST_CPU_SHARE = 0.98


@functools.cache
def _backend() -> Backend | None:
    try:
        return load("native")
    except RoofError:
        return None


def clock_hz(cpu: int) -> float | None:
    """Return a CPU's clock now, None without compiled kernels or where the CPU was never this process's.

    In the measuring child alone.
    """
    backend = _backend()
    if backend is None or not backend.isas("clock", ""):
        return None
    try:
        found = backend.run(
            Request(
                kernel="clock",
                element_type="",
                cpus=(cpu,),
                repetition_seconds=_REPETITION_SECONDS,
                min_repetitions=_REPETITIONS,
                warmup_seconds=0.0,
                budget_seconds=_REPETITIONS * _REPETITION_SECONDS,
            )
        )
    except RoofError:
        return None
    # Whatever disturbs a repetition makes it longer; one that had to share its CPU says nothing.
    own = [
        seconds
        for seconds, share in zip(found.seconds, found.cpu_shares, strict=True)
        if share >= _LEAST_CPU_SHARE
    ]
    return found.steps / min(own) if own else None
