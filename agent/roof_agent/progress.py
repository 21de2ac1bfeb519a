"""What a person sees while it runs, on standard error: one redrawn line on a terminal, else plain lines."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import time
from typing import TextIO

from roof_agent.probes import label
from roof_agent.records import Measurement, Outcome
from roof_agent.units import quantity

log = logging.getLogger("roof_agent.run")

# Back to the first column, and clear the line.
_CLEAR = "\r\x1b[K"


class Progress:
    """A run's watcher. `redraw` draws one line over and over; otherwise each measurement is logged."""

    def __init__(self, stream: TextIO | None = None, *, redraw: bool) -> None:
        self._stream = stream or sys.stderr
        self._redraw = redraw
        self._position = ""

    def begins(self, done: int, planned: int, current: str, seconds_left: float) -> None:
        """Show what is being measured and about how long the rest will take."""
        self._position = f"{done + 1}/{planned}"
        if self._redraw:
            line = f"[{self._position}] {current}, about {_duration(seconds_left)} left"
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(_CLEAR + line[:width])
            self._stream.flush()

    def ended(self, measurement: Measurement) -> None:
        """Say what came out."""
        level = logging.WARNING if measurement.outcome is Outcome.FAILED else logging.INFO
        log.log(level, "%s %s: %s", self._position, label(measurement), summary(measurement))

    def clear(self) -> None:
        """Take the redrawn line away."""
        if self._redraw:
            self._stream.write(_CLEAR)
            self._stream.flush()


def summary(measurement: Measurement) -> str:
    """Return a measurement's outcome in a few words."""
    best = measurement.best
    if best is None:
        return f"{measurement.outcome.value}: {measurement.reason}"
    verdict = f", {measurement.grade.value}" if measurement.grade else ""
    reasons = f" ({'; '.join(measurement.grade_reasons)})" if measurement.grade_reasons else ""
    return f"{quantity(measurement.quantity).format(best)}{verdict}{reasons}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(round(seconds), 0), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        prefix = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        return prefix + super().format(record)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        document = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return json.dumps(document)


class _Handler(logging.StreamHandler[TextIO]):
    """Clears the redrawn line before a log line, on a terminal."""

    def __init__(self, *, clear: bool) -> None:
        super().__init__(sys.stderr)
        self._clear = clear

    def emit(self, record: logging.LogRecord) -> None:
        if self._clear:
            self.stream.write(_CLEAR)
        super().emit(record)


def set_up_logging(*, quiet: bool, verbose: bool, as_json: bool, redraw: bool) -> None:
    """Send logs to standard error; measurements are logged where no line is redrawn, or with verbose."""
    handler = _Handler(clear=redraw)
    handler.setFormatter(_JsonFormatter() if as_json else _TextFormatter("%(message)s"))
    root = logging.getLogger("roof_agent")
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)
    log.setLevel(logging.WARNING if redraw and not verbose else logging.NOTSET)
