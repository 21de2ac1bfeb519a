"""The spool keeps what it was given, whatever happens to its files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from roof_agent.records import Measurement, Outcome, RunEnd
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
    del first  # The lock goes with the process; here, with its descriptor.
    again = reopened(tmp_path)
    assert subjects(again) == ["s0", "s1", "s2"]
    again.ack(RUN, 3)
    assert not list((tmp_path / "runs").iterdir())


def reopened(folder: Path) -> DiskSpool:
    """Open a spool as after its process died: the locks are released with it."""
    for lock in folder.glob("runs/*/lock"):
        lock.unlink()
    return DiskSpool(folder)


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
