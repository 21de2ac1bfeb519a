"""What a run's row says of how it stands."""

from __future__ import annotations

import enum
from typing import Any

from sqlalchemy import Row

# Longer than any single measurement: an agent is silent while it measures.
SILENCE_NS = 300 * 10**9


class State(enum.Enum):
    """How a run stands."""

    RUNNING = "running"
    # Its session ended, or was long silent, before the run did. It may go on yet.
    INTERRUPTED = "interrupted"
    COMPLETE = "complete"
    # It ended, and some measurement failed or was lost.
    PARTIAL = "partial"


def run_state(row: Row[Any], now_ns: int) -> State:
    """Return how the run of `row` stands at `now_ns`, Unix nanoseconds."""
    if row.ended_at is not None:
        return State.COMPLETE if row.complete else State.PARTIAL
    # A collector that was killed leaves its sessions in the table.
    if row.stream is None or now_ns - row.heard_at > SILENCE_NS:
        return State.INTERRUPTED
    return State.RUNNING
