"""What the collector would like boards to measure."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlalchemy import Engine

from roof_agent.records import ModelRef, Plan
from roof_collector.ingest.session import Planner
from roof_collector.store.parts import put_model

FIRST_NETWORKS = ("mobilenet_v1", "resnet18")


def zoo_planner(engine: Engine, names: Sequence[str] = FIRST_NETWORKS) -> Planner:
    """Return a planner that asks every board for these networks, at one thread and at all.

    They are built and kept in the database, from where any collector on it can give them.
    """
    from roof_collector.models import zoo

    refs = []
    for name in names:
        data = zoo.build(name).SerializeToString(deterministic=True)
        with engine.begin() as connection:
            sha256 = put_model(connection, data, name, "zoo", time.time_ns())
        refs.append(ModelRef(name, sha256, len(data)))
    plan = Plan(models=tuple(refs), threads=(1, 0))
    return lambda device: plan
