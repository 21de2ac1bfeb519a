"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "device",
        sa.Column("id", ROW_NUMBER, nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("hostname", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("soc", sa.Text(), nullable=False),
        sa.Column("architecture", sa.Text(), nullable=False),
        sa.Column("os", sa.Text(), nullable=False),
        sa.Column("kernel", sa.Text(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("page_bytes", sa.BigInteger(), nullable=False),
        sa.Column("clusters", sa.JSON(), nullable=False),
        sa.Column("caches", sa.JSON(), nullable=False),
        sa.Column("isa_features", sa.JSON(), nullable=False),
        sa.Column("virtualization", sa.Text(), nullable=False),
        sa.Column("container", sa.Text(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("agent_version", sa.Text(), nullable=False),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_device"),
        sa.UniqueConstraint("fingerprint", name="uq_device_fingerprint"),
    )
    op.create_table(
        "model",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_model"),
    )
    op.create_table(
        "run",
        sa.Column("id", ROW_NUMBER, nullable=False),
        sa.Column("device_id", ROW_NUMBER, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("next_seq", sa.BigInteger(), nullable=False),
        sa.Column("agent_version", sa.Text(), nullable=True),
        sa.Column("preset", sa.Text(), nullable=True),
        sa.Column("boot_id", sa.Text(), nullable=True),
        sa.Column("monotonic_ns", sa.BigInteger(), nullable=True),
        sa.Column("wall_unix_ns", sa.BigInteger(), nullable=True),
        sa.Column("labels", sa.JSON(), nullable=True),
        sa.Column("device_facts", sa.JSON(), nullable=True),
        sa.Column("planned", sa.Integer(), nullable=True),
        sa.Column("done", sa.Integer(), nullable=True),
        sa.Column("current", sa.Text(), nullable=True),
        sa.Column("stream", sa.Text(), nullable=True),
        sa.Column("heard_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("complete", sa.Boolean(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("ok", sa.Integer(), nullable=True),
        sa.Column("unavailable", sa.Integer(), nullable=True),
        sa.Column("failed", sa.Integer(), nullable=True),
        sa.Column("dropped", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name="fk_run_device_id"),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
        sa.UniqueConstraint("device_id", "run_id", name="uq_run_device_id_run_id"),
    )
    op.create_index("ix_run_received_at", "run", ["received_at"])

    op.create_table(
        "measurement",
        sa.Column("run", ROW_NUMBER, autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("probe", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("quantity", sa.Text(), nullable=False),
        sa.Column("element_type", sa.Text(), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.Column("cpus", sa.JSON(), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("backend_version", sa.Text(), nullable=False),
        sa.Column("isa", sa.Text(), nullable=False),
        sa.Column("compiler", sa.Text(), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("grade", sa.Text(), nullable=True),
        sa.Column("grade_reasons", sa.JSON(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=True),
        sa.Column("min", sa.Double(), nullable=True),
        sa.Column("q10", sa.Double(), nullable=True),
        sa.Column("median", sa.Double(), nullable=True),
        sa.Column("q90", sa.Double(), nullable=True),
        sa.Column("max", sa.Double(), nullable=True),
        sa.Column("mean", sa.Double(), nullable=True),
        sa.Column("mad", sa.Double(), nullable=True),
        sa.Column("ci_low", sa.Double(), nullable=True),
        sa.Column("ci_high", sa.Double(), nullable=True),
        sa.Column("repetitions", sa.LargeBinary(), nullable=True),
        sa.Column("stream_bytes", sa.Double(), nullable=True),
        sa.Column("bus_bytes", sa.Double(), nullable=True),
        sa.Column("flops", sa.Double(), nullable=True),
        sa.Column("working_set_bytes", sa.BigInteger(), nullable=True),
        sa.Column("conditions_before", sa.JSON(), nullable=True),
        sa.Column("conditions_after", sa.JSON(), nullable=True),
        sa.Column("started_monotonic_ns", sa.BigInteger(), nullable=False),
        sa.Column("elapsed_seconds", sa.Double(), nullable=False),
        sa.Column("cpu_share", sa.Double(), nullable=True),
        sa.Column("involuntary_switches", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name="fk_measurement_run"),
        sa.PrimaryKeyConstraint("run", "seq", name="pk_measurement"),
    )
    op.create_table(
        "model_part",
        sa.Column("run", ROW_NUMBER, autoincrement=False, nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("start_byte", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name="fk_model_part_run"),
        sa.PrimaryKeyConstraint("run", "sha256", "start_byte", name="pk_model_part"),
    )
    op.create_table(
        "rejection",
        sa.Column("run", ROW_NUMBER, autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name="fk_rejection_run"),
        sa.PrimaryKeyConstraint("run", "seq", name="pk_rejection"),
    )
    op.create_table(
        "network",
        sa.Column("run", ROW_NUMBER, autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("model_name", sa.Text(), nullable=False),
        sa.Column("model_sha256", sa.Text(), nullable=False),
        sa.Column("executed_sha256", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("optimization", sa.Text(), nullable=False),
        sa.Column("unjoined_seconds", sa.Double(), nullable=False),
        sa.Column("profiled_seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run", "seq"], ["measurement.run", "measurement.seq"], name="fk_network_run_seq"
        ),
        sa.PrimaryKeyConstraint("run", "seq", name="pk_network"),
    )
    op.create_index("ix_network_model_sha256", "network", ["model_sha256"])

    op.create_table(
        "layer",
        sa.Column("run", ROW_NUMBER, autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("op_type", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("min", sa.Double(), nullable=False),
        sa.Column("q10", sa.Double(), nullable=False),
        sa.Column("median", sa.Double(), nullable=False),
        sa.Column("q90", sa.Double(), nullable=False),
        sa.Column("max", sa.Double(), nullable=False),
        sa.Column("mean", sa.Double(), nullable=False),
        sa.Column("mad", sa.Double(), nullable=False),
        sa.Column("ci_low", sa.Double(), nullable=False),
        sa.Column("ci_high", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run", "seq"], ["network.run", "network.seq"], name="fk_layer_run_seq"),
        sa.PrimaryKeyConstraint("run", "seq", "position", name="pk_layer"),
    )
