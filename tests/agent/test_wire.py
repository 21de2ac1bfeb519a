"""Records survive the wire: whatever is set stays, whatever isn't stays unset."""

import json
import math
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roof_agent import records
from roof_agent.wire import parse_plan, parse_record, plan_message, record_message
from roofline.v1 import run_pb2

# Strategies follow the fields' types; protobuf's own ranges are given where they are narrower.
text = st.text(st.characters(codec="utf-8"), max_size=8)
U32, U64, I64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1)
for kind in (records.Cluster, records.Cache):
    st.register_type_strategy(
        kind,
        st.builds(
            kind,
            **{"cpus": st.lists(U32, max_size=3).map(tuple)}
            if kind is records.Cluster
            else {
                "level": U32,
                "size_bytes": U64,
                "line_bytes": st.none() | U32,
                "shared_cpus": st.lists(U32, max_size=3).map(tuple),
            },
        ),
    )
devices = st.builds(records.Device, memory_bytes=U64, page_bytes=U32)
conditions = st.builds(
    records.Conditions,
    monotonic_ns=I64,
    frequency_hz=st.dictionaries(U32, st.floats(), max_size=2),
    throttled_bits=st.none() | U32,
    **dict.fromkeys(
        (
            "steal_ticks",
            "busy_ticks",
            "total_ticks",
            "memory_available_bytes",
            "cgroup_throttled_us",
            "cgroup_memory_bytes",
        ),
        st.none() | U64,
    ),
)
statistics = st.builds(records.Statistics, n=U32)
networks = st.builds(
    records.NetworkDetail,
    nodes=st.lists(st.builds(records.NodeTime, index=U32, seconds=statistics), max_size=2).map(tuple),
)
measurements = st.builds(
    records.Measurement,
    threads=U32,
    cpus=st.lists(U32, max_size=3).map(tuple),
    statistics=st.none() | statistics,
    work=st.none() | st.builds(records.Work, working_set_bytes=U64),
    before=st.none() | conditions,
    after=st.none() | conditions,
    started_monotonic_ns=I64,
    involuntary_switches=st.none() | U64,
    network=st.none() | networks,
)
models = st.builds(records.ModelRef, size_bytes=U64)
contents = st.one_of(
    st.builds(records.RunStart, device=devices, monotonic_ns=I64, wall_unix_ns=I64, planned_measurements=U32),
    measurements,
    st.builds(records.ModelPart, model=models, offset=U64),
    st.builds(records.RunEnd, monotonic_ns=I64, ok=U32, unavailable=U32, failed=U32, dropped=U64),
)


def plain(record: records.Record) -> str:
    """Return text in which NaN equals itself and the order of a dictionary doesn't count."""
    return json.dumps([type(record.content).__name__, asdict(record)], default=repr, sort_keys=True)


@settings(max_examples=60, deadline=None)
@given(U64, contents)
def test_a_record_comes_back_as_it_went(seq: int, content: records.Content) -> None:
    record = records.Record(seq, content)
    data = record_message(record).SerializeToString()
    assert plain(parse_record(run_pb2.Record.FromString(data))) == plain(record)


def test_unknown_stays_unknown_and_zero_stays_zero() -> None:
    known = records.Measurement(
        "p", "s", "seconds", records.Outcome.OK, cpu_share=0.0, involuntary_switches=0
    )
    for measurement in (known, replace(known, cpu_share=None, involuntary_switches=None)):
        back = parse_record(record_message(records.Record(1, measurement))).content
        assert back == measurement


def test_a_repetition_that_is_no_number_is_kept_as_it_is() -> None:
    odd = records.Measurement("p", "s", "seconds", records.Outcome.OK, repetitions=(math.nan, math.inf))
    back = parse_record(record_message(records.Record(1, odd))).content
    assert isinstance(back, records.Measurement)
    assert math.isnan(back.repetitions[0])


def test_a_record_of_a_later_version_is_refused_with_its_number() -> None:
    with pytest.raises(ValueError, match="record 7"):
        parse_record(run_pb2.Record(seq=7))


def test_a_plan_comes_back() -> None:
    plan = records.Plan(("peak",), (records.ModelRef("net", "0" * 64, 7),), (1, 0))
    assert parse_plan(plan_message(plan)) == plan
