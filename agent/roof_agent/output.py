"""Where a run's contents go besides the collector: a file of JSON lines, or memory for the tables."""

from __future__ import annotations

import contextlib
import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roof_agent.documents import SCHEMA, to_document
from roof_agent.errors import UsageError
from roof_agent.records import Content, Measurement, ModelPart, RunEnd, RunStart

log = logging.getLogger(__name__)

# As the fields of the protocol's Record are called.
_KINDS: dict[type[Any], str] = {
    RunStart: "start",
    Measurement: "measurement",
    ModelPart: "model_part",
    RunEnd: "end",
}


class JsonLines:
    """Appends each content as one line: {"schema", "run", "seq", KIND: {...}}."""

    def __init__(self, path: Path, run_id: str) -> None:
        """Open the file. Raises UsageError where it can't be written."""
        self._run_id = run_id
        self._path = path
        self._seq = 0
        # Set where the file couldn't be written to its end.
        self.failed = False
        try:
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"can't write {path}: {error.strerror}") from error

    def emit(self, content: Content) -> None:
        """Write one line, whole or not at all to whoever reads meanwhile."""
        document = {"schema": SCHEMA, "run": self._run_id, "seq": self._seq}
        line = json.dumps({**document, _KINDS[type(content)]: to_document(content)}) + "\n"
        self._seq += 1
        if self.failed:
            return
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            # The figures are worth more than the file: the run goes on, and the terminal has them.
            self.failed = True
            log.error("can't write %s: %s; the run goes on without it", self._path, error.strerror)  # noqa: TRY400

    def close(self) -> None:
        """Close the file."""
        # What couldn't be written can't be flushed either, and that was said.
        with contextlib.suppress(OSError):
            self._file.close()


@dataclass
class Results:
    """The run in memory: what the tables and the one JSON document are made of."""

    run_id: str
    start: RunStart | None = None
    measurements: list[Measurement] = field(default_factory=list)
    end: RunEnd | None = None

    def emit(self, content: Content) -> None:
        """Keep one content; graphs aren't shown and aren't kept."""
        match content:
            case RunStart():
                self.start = content
            case Measurement():
                self.measurements.append(content)
            case RunEnd():
                self.end = content
            case ModelPart():
                pass

    def document(self) -> dict[str, Any]:
        """Return the run as one JSON document."""
        return {
            "schema": SCHEMA,
            "run": self.run_id,
            "start": to_document(self.start),
            "measurements": to_document(self.measurements),
            "end": to_document(self.end),
        }
