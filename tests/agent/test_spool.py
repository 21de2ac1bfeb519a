"""The spool keeps what it was given, whatever happens to its files."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roof_agent.records import Measurement, ModelPart, ModelRef, Outcome, RunEnd
from roof_agent.spool import DiskSpool, MemorySpool, Spool, default_folder, open_spool

RUN = "0123abcd-0000"


def content(number: int, repetitions: int = 3) -> Measurement:
    return Measurement("p", f"s{number}", "seconds", Outcome.OK, repetitions=(float(number),) * repetitions)


def subjects(spool: Spool, from_seq: int = 0, run_id: str = RUN) -> list[str]:
    return [
        record.measurement.subject if record.WhichOneof("content") else "lost"
        for record in spool.pending(run_id, from_seq)
    ]


@pytest.fixture(params=["disk", "memory"])
def spool(request: pytest.FixtureRequest, tmp_path: Path) -> Spool:
    return DiskSpool(tmp_path / "spool") if request.param == "disk" else MemorySpool()


class TestContract:
    def test_from_any_number_on(self, spool: Spool) -> None:
        for n in range(5):
            spool.append(RUN, content(n))
        for start in range(7):
            assert subjects(spool, start) == [f"s{n}" for n in range(start, 5)]
        assert subjects(spool, run_id="ffff0000-1111") == []

    def test_what_is_unacknowledged_is_counted(self, spool: Spool) -> None:
        for n in range(3):
            spool.append(RUN, content(n))
        spool.append("ffff0000-1111", content(0))
        assert spool.unacknowledged() == 4
        spool.ack(RUN, 2)
        spool.ack(RUN, 1)  # One that comes late takes nothing back.
        assert spool.unacknowledged() == 2

    def test_a_run_ends_with_its_end(self, spool: Spool) -> None:
        spool.append(RUN, content(0))
        spool.append(RUN, RunEnd(True, 0, 1, 0, 0))
        spool.ack(RUN, 2)
        assert spool.positions() == {}

    def test_an_acknowledgement_may_be_faster_than_closing(self, spool: Spool) -> None:
        spool.append(RUN, content(0))
        spool.ack(RUN, 1)
        spool.close(RUN)
        assert spool.positions() == {}

    def test_an_acknowledgement_of_what_isnt_there_changes_nothing(self, spool: Spool) -> None:
        spool.ack("ffff0000-1111", 7)
        assert spool.positions() == {}

    def test_a_large_model_goes_in_pieces(self, spool: Spool) -> None:
        data = bytes(range(256)) * 2048
        spool.append(RUN, content(0))
        last = spool.append(RUN, ModelPart(ModelRef("net", "0" * 64, len(data)), 0, data))
        parts = [record.model_part for record in spool.pending(RUN, 1)]
        assert last == len(parts) == 4
        assert b"".join(part.data for part in parts) == data
        offset = 0
        for part in parts:
            assert part.offset == offset
            offset += len(part.data)

    def test_a_record_too_large_for_a_message_loses_its_repetitions(self, spool: Spool) -> None:
        spool.append(RUN, content(0, repetitions=100_000))
        (record,) = spool.pending(RUN, 0)
        assert record.measurement.subject == "s0"
        assert not record.measurement.repetitions
        assert spool.dropped == 1

    def test_the_listener_hears_of_each_record(self, spool: Spool) -> None:
        heard: list[int] = []
        spool.listener = lambda: heard.append(spool.positions()[RUN])
        spool.append(RUN, content(0))
        spool.append(RUN, content(1))
        assert heard == [1, 2]

    def test_records_come_back_in_order(self, spool: Spool) -> None:
        assert [spool.append(RUN, content(n)) for n in range(3)] == [0, 1, 2]
        assert subjects(spool) == ["s0", "s1", "s2"]
        assert subjects(spool, 2) == ["s2"]
        assert spool.positions() == {RUN: 3}

    def test_a_run_is_forgotten_when_all_of_it_is_acknowledged(self, spool: Spool) -> None:
        for n in range(3):
            spool.append(RUN, content(n))
        spool.ack(RUN, 2)
        assert subjects(spool, 2) == ["s2"]
        assert spool.positions() == {RUN: 3}
        spool.close(RUN)
        spool.ack(RUN, 3)
        assert spool.positions() == {}

    def test_a_run_that_goes_on_is_not_forgotten(self, spool: Spool) -> None:
        spool.append(RUN, content(0))
        spool.ack(RUN, 1)
        assert spool.append(RUN, content(1)) == 1
        assert subjects(spool, 1) == ["s1"]


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    first = DiskSpool(tmp_path)
    for n in range(3):
        first.append(RUN, content(n))
    first.release()
    again = DiskSpool(tmp_path)
    assert subjects(again) == ["s0", "s1", "s2"]
    assert again.unacknowledged() == 3
    again.ack(RUN, 3)
    assert not list((tmp_path / "runs").iterdir())


def test_f3_an_agent_killed_while_it_appends_has_kept_all_that_it_had_appended(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from roof_agent.spool import DiskSpool\n"
        "from roof_agent.records import Measurement, Outcome\n"
        "spool = DiskSpool(Path(sys.argv[1]))\n"
        "for n in range(10**6):\n"
        f"    spool.append({RUN!r}, Measurement('p', f's{{n}}', 'seconds', Outcome.OK))\n"
        "    print(n, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as agent:
        assert agent.stdout is not None
        for _ in range(20):
            last = int(agent.stdout.readline())
        assert DiskSpool(tmp_path).positions() == {}  # It is the other's while that lives.
        agent.kill()
        last = max([last, *map(int, agent.stdout.read().split())])
    spool = DiskSpool(tmp_path)
    assert subjects(spool)[: last + 1] == [f"s{n}" for n in range(last + 1)]


def written(folder: Path) -> tuple[bytes, list[int]]:
    """Return a segment of three records and where each of them ends."""
    spool = DiskSpool(folder)
    ends = []
    for n in range(3):
        spool.append(RUN, content(n))
        (segment,) = folder.glob("runs/*/*.segment")
        ends.append(segment.stat().st_size)
    return segment.read_bytes(), ends


def test_f4_a_tail_torn_at_any_byte_costs_the_torn_record_alone(tmp_path: Path) -> None:
    whole, ends = written(tmp_path / "whole")
    for length in range(len(whole) + 1):
        folder = tmp_path / str(length)
        (folder / "runs" / RUN).mkdir(parents=True)
        (folder / "runs" / RUN / "000000000000.segment").write_bytes(whole[:length])
        spool = DiskSpool(folder)
        assert subjects(spool) == ["s0", "s1", "s2"][: sum(end <= length for end in ends)], length
        assert spool.damaged == (length not in (0, *ends)), length


def test_f5_damage_in_the_middle_costs_the_damaged_record_alone(tmp_path: Path) -> None:
    whole, ends = written(tmp_path / "whole")
    for at in range(len(whole)):
        folder = tmp_path / str(at)
        (folder / "runs" / RUN).mkdir(parents=True)
        flipped = bytearray(whole)
        flipped[at] ^= 0x55
        (folder / "runs" / RUN / "000000000000.segment").write_bytes(flipped)
        spool = DiskSpool(folder)
        hit = sum(end <= at for end in ends)
        # A loss at the end can't be seen to be one; before that it is, and is yielded as lost.
        expected = [f"s{n}" if n != hit else "lost" for n in range(3)]
        assert subjects(spool) == (expected[:2] if hit == 2 else expected), at
        assert spool.damaged == 1, at
        assert list((folder / "quarantine").iterdir()), at


def test_acknowledged_segments_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roof_agent.spool.disk.SEGMENT_BYTES", 1)
    spool = DiskSpool(tmp_path)
    for n in range(4):
        spool.append(RUN, content(n))
    spool.ack(RUN, 2)
    assert len(list(tmp_path.glob("runs/*/*.segment"))) == 2
    assert subjects(spool, 2) == ["s2", "s3"]


@pytest.mark.parametrize("make", [lambda folder: DiskSpool(folder, 2000), lambda folder: MemorySpool(2000)])
def test_a_full_spool_drops_repetitions_then_measurements_and_never_the_end(
    make: Callable[[Path], Spool], tmp_path: Path
) -> None:
    spool = make(tmp_path)
    kept = [spool.append(RUN, content(n, 40)) for n in range(200)]
    assert spool.append(RUN, RunEnd(True, 0, 0, 0, 0)) is not None
    records = list(spool.pending(RUN, 0))
    assert len(records[0].measurement.repetitions) == 40
    assert len(records[-2].measurement.repetitions) == 0
    assert records[-1].end.dropped == spool.dropped
    assert kept[-1] is None
    assert spool.dropped >= kept.count(None) > 0
    assert [record.seq for record in records] == list(range(len(records)))


def test_a_disk_that_is_nearly_full_is_left_alone(tmp_path: Path) -> None:
    said: list[str] = []
    spool = DiskSpool(tmp_path, warn=said.append, free_and_total=lambda folder: (1 << 20, 1 << 40))
    assert [spool.append(RUN, content(n)) for n in range(2)] == [0, 1]
    assert subjects(spool) == ["s0", "s1"]
    assert not list(tmp_path.glob("runs/*/*.segment"))
    assert len(said) == 1
    assert "nearly full" in said[0]


def test_a_folder_that_cannot_be_written_is_said_and_memory_serves(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    spool = open_spool(tmp_path / "file" / "spool", said.append)
    assert isinstance(spool, MemorySpool)
    assert len(said) == 1
    assert "memory" in said[0]


def test_two_agents_share_a_folder_without_touching_each_others_runs(tmp_path: Path) -> None:
    mine = DiskSpool(tmp_path)
    mine.append(RUN, content(0))
    theirs = DiskSpool(tmp_path)
    assert theirs.positions() == {}
    theirs.append("ffff0000-1111", content(1))
    assert subjects(mine) == ["s0"]


def test_the_default_folder_is_the_services_or_the_users() -> None:
    assert default_folder({"STATE_DIRECTORY": "/var/lib/roof-agent"}) == Path("/var/lib/roof-agent/spool")
    assert default_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/roofline/spool")
    assert default_folder({"HOME": "/h"}) == Path("/h/.local/state/roofline/spool")


def test_foreign_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "notes.txt").write_text("mine")
    assert DiskSpool(tmp_path).positions() == {}
    assert (tmp_path / "runs" / "notes.txt").read_text() == "mine"


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Have the kernel refuse to write beyond `size`, as a full disk does: short, then with an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_f6_a_disk_that_fails_in_the_middle_of_a_run_costs_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    spool = DiskSpool(tmp_path, warn=said.append)
    spool.append(RUN, content(0))
    (segment,) = tmp_path.glob("runs/*/*.segment")
    size = segment.stat().st_size
    with no_file_longer_than(size + 10):
        spool.append(RUN, content(1))
    # No order would be kept if the run went back to the disk.
    spool.append(RUN, content(2))
    assert subjects(spool) == ["s0", "s1", "s2"]
    assert segment.stat().st_size == size
    assert len(said) == 1
    assert "memory only" in said[0]
    spool.append("ffff0000-1111", content(3))
    assert len(list(tmp_path.glob("runs/ffff*/*.segment"))) == 1
    spool.close(RUN)
    spool.ack(RUN, 3)
    assert list(spool.positions()) == ["ffff0000-1111"]


def test_what_isnt_a_segment_or_a_lock_stops_nothing(tmp_path: Path) -> None:
    run = tmp_path / "runs" / RUN
    run.mkdir(parents=True)
    (run / "000000000000.segment").mkdir()
    elsewhere, _ = written(tmp_path / "elsewhere")
    (tmp_path / "segment").write_bytes(elsewhere)
    (run / "000000000001.segment").symlink_to(tmp_path / "segment")
    (run / "notes.segment").write_text("mine")
    odd = tmp_path / "runs" / "ffff0000-1111"
    (odd / "lock").mkdir(parents=True)
    spool = DiskSpool(tmp_path)
    assert spool.positions() == {}
    assert spool.damaged == 1
    assert spool.append("ffff0000-1111", content(0)) == 0
    assert subjects(spool, run_id="ffff0000-1111") == ["s0"]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_f5_whatever_happens_to_a_segment_the_spool_starts_and_tells_the_truth(data: st.DataObject) -> None:
    """What comes out is what went in or is said to be lost; what wasn't touched comes out."""
    with tempfile.TemporaryDirectory() as name:
        whole, ends = written(Path(name) / "whole")
        begins = [0, *ends[:-1]]
        at = data.draw(st.integers(0, len(whole)))
        removed = data.draw(st.integers(0, len(whole) - at))
        added = data.draw(st.binary(max_size=40) | st.just(whole[:17]))
        folder = Path(name) / "damaged"
        (folder / "runs" / RUN).mkdir(parents=True)
        (folder / "runs" / RUN / "000000000000.segment").write_bytes(
            whole[:at] + added + whole[at + removed :]
        )
        spool = DiskSpool(folder)
        found = subjects(spool)
        spool.release()
    assert all(subject in {f"s{seq}", "lost"} for seq, subject in enumerate(found))
    for seq, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if end <= at or begin >= at + removed:
            assert found[seq] == f"s{seq}"
