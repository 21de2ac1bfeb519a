"""The Chrome trace of a run."""

import json
from pathlib import Path

import pytest

from roof_agent.errors import UsageError
from roof_agent.records import Measurement, NetworkDetail, NodeTime, Outcome
from roof_agent.statistics import summarize
from roof_agent.trace import Trace


def test_layers_stand_under_their_network_one_after_the_other(tmp_path: Path) -> None:
    nodes = tuple(NodeTime(i, name, "Conv", summarize([0.001 * (i + 1)] * 3)) for i, name in enumerate("ab"))
    network = NetworkDetail("net", "0" * 64, "1" * 64, "CPUExecutionProvider", "all", nodes, 0.0, 0.003)
    trace = Trace(tmp_path / "t.json")
    trace.emit(
        Measurement(
            "network", "net", "seconds", Outcome.OK, started_monotonic_ns=5_000_000, elapsed_seconds=2.0,
            network=network, statistics=summarize([0.002]),
        )
    )  # fmt: skip
    trace.emit(Measurement("network", "other", "seconds", Outcome.UNAVAILABLE))
    trace.close()
    document = json.loads((tmp_path / "t.json").read_text())
    complete = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert [(e["name"], e["ts"], e["dur"]) for e in complete] == [
        ("network net", 5000.0, 2e6),
        ("a", 5000.0, 1000.0),
        ("b", 6000.0, 2000.0),
    ]
    # What Perfetto's importer asks of a complete event.
    for event in complete:
        assert {"name", "ph", "pid", "tid", "ts", "dur"} <= event.keys()


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't write"):
        Trace(tmp_path / "missing" / "t.json")
