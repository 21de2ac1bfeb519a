"""The tables, the same in SQLite and in PostgreSQL.

A measurement is one row, found by its run and its number in it; a network's measurement has one row
more in `network` and one a node in `layer`. Times of day (`*_at`) are integer nanoseconds since 1970,
stamped by the collector: boards' clocks order nothing. Enumerations hold the values of the agent's
enumerations (`roof_agent.records.Outcome.OK.value`); unknown is NULL, and "" where a text is absent.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself in a column of exactly this type.
_ROW_NUMBER = BigInteger().with_variant(Integer, "sqlite")


def _required(name: str, kind: TypeEngine[Any] | type[TypeEngine[Any]]) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _statistics(*, nullable: bool) -> list[Column[Any]]:
    """Return the columns of `roof_agent.records.Statistics`, in the measurement's quantity."""
    names = ("min", "q10", "median", "q90", "max", "mean", "mad", "ci_low", "ci_high")
    return [
        Column("n", Integer, nullable=nullable),
        *(Column(name, Double, nullable=nullable) for name in names),
    ]


# A board. What its agent last said of it; a run keeps what was true when it began.
device = Table(
    "device",
    metadata,
    Column("id", _ROW_NUMBER, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    _required("hostname", Text),
    _required("model", Text),
    _required("soc", Text),
    _required("architecture", Text),
    _required("os", Text),
    _required("kernel", Text),
    _required("memory_bytes", BigInteger),
    _required("page_bytes", BigInteger),
    # Lists of objects with the fields of records.Cluster and records.Cache.
    _required("clusters", JSON),
    _required("caches", JSON),
    _required("isa_features", JSON),
    _required("virtualization", Text),
    _required("container", Text),
    _required("labels", JSON),
    _required("agent_version", Text),
    _required("first_seen_at", BigInteger),
    _required("last_seen_at", BigInteger),
)

run = Table(
    "run",
    metadata,
    Column("id", _ROW_NUMBER, primary_key=True),
    Column("device_id", _ROW_NUMBER, ForeignKey("device.id"), nullable=False),
    # The agent's own name of the run, which no other device need respect.
    _required("run_id", Text),
    _required("received_at", BigInteger),
    # The first record that isn't here yet: all below are stored or rejected.
    _required("next_seq", BigInteger),
    # Of RunStart; NULL until it came.
    Column("agent_version", Text),
    Column("preset", Text),
    Column("boot_id", Text),
    Column("monotonic_ns", BigInteger),
    Column("wall_unix_ns", BigInteger),
    Column("labels", JSON),
    Column("device_facts", JSON),
    # How far it is: of RunStart, then of heartbeats.
    Column("planned", Integer),
    Column("done", Integer),
    Column("current", Text),
    # The session that feeds it, NULL when that ended; and when it was last heard.
    Column("stream", Text),
    _required("heard_at", BigInteger),
    # Of RunEnd; NULL until it came.
    Column("ended_at", BigInteger),
    Column("complete", Boolean),
    Column("reason", Text),
    Column("ok", Integer),
    Column("unavailable", Integer),
    Column("failed", Integer),
    Column("dropped", BigInteger),
    UniqueConstraint("device_id", "run_id"),
    Index(None, "received_at"),
)

measurement = Table(
    "measurement",
    metadata,
    Column("run", _ROW_NUMBER, ForeignKey("run.id"), primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _required("received_at", BigInteger),
    _required("probe", Text),
    _required("subject", Text),
    _required("quantity", Text),
    _required("element_type", Text),
    _required("threads", Integer),
    _required("cpus", JSON),
    _required("backend", Text),
    _required("backend_version", Text),
    _required("isa", Text),
    _required("compiler", Text),
    _required("parameters", JSON),
    _required("outcome", Text),
    _required("reason", Text),
    Column("grade", Text),
    _required("grade_reasons", JSON),
    # NULL where there is no result.
    *_statistics(nullable=True),
    # Every repetition, packed: see packing.py.
    Column("repetitions", LargeBinary),
    # What one repetition did: records.Work.
    Column("stream_bytes", Double),
    Column("bus_bytes", Double),
    Column("flops", Double),
    Column("working_set_bytes", BigInteger),
    # Objects with those fields of records.Conditions that are known.
    Column("conditions_before", JSON),
    Column("conditions_after", JSON),
    _required("started_monotonic_ns", BigInteger),
    _required("elapsed_seconds", Double),
    Column("cpu_share", Double),
    Column("involuntary_switches", BigInteger),
)

network = Table(
    "network",
    metadata,
    Column("run", _ROW_NUMBER, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _required("model_name", Text),
    _required("model_sha256", Text),
    _required("executed_sha256", Text),
    _required("provider", Text),
    _required("optimization", Text),
    _required("unjoined_seconds", Double),
    _required("profiled_seconds", Double),
    ForeignKeyConstraint(["run", "seq"], ["measurement.run", "measurement.seq"]),
    Index(None, "model_sha256"),
)

# One node of the executed graph; `position` is its index there. Statistics in seconds.
layer = Table(
    "layer",
    metadata,
    Column("run", _ROW_NUMBER, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    _required("name", Text),
    _required("op_type", Text),
    *_statistics(nullable=False),
    ForeignKeyConstraint(["run", "seq"], ["network.run", "network.seq"]),
)

# A record that couldn't be stored, and why.
rejection = Table(
    "rejection",
    metadata,
    Column("run", _ROW_NUMBER, ForeignKey("run.id"), primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _required("received_at", BigInteger),
    _required("reason", Text),
)

# Weightless models, each whole and of the digest that it is named by.
model = Table(
    "model",
    metadata,
    Column("sha256", Text, primary_key=True),
    # A label; models of other names may have the same digest.
    _required("name", Text),
    # "zoo" for one that the collector offers, "agent" for one that came from a board.
    _required("origin", Text),
    _required("size_bytes", BigInteger),
    _required("data", LargeBinary),
    _required("received_at", BigInteger),
)

# Pieces of models on their way, until the whole has been checked. A run's pieces are its own: a
# broken agent can't spoil another's.
model_part = Table(
    "model_part",
    metadata,
    Column("run", _ROW_NUMBER, ForeignKey("run.id"), primary_key=True, autoincrement=False),
    Column("sha256", Text, primary_key=True),
    Column("start_byte", BigInteger, primary_key=True, autoincrement=False),
    _required("name", Text),
    _required("size_bytes", BigInteger),
    _required("data", LargeBinary),
)
