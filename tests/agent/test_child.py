"""The measuring child: whatever becomes of it, the parent gets a reading or a plain reason."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from roof_agent.child import measure, native_problem
from roof_agent.probes import Task

# A probe that does what its subject says; the interpreter loads it before the child's own code.
CUSTOM = """
import os, sys, signal, time
if sys.argv[0] == "-m":
    from roof_agent.errors import MeasurementError, Unavailable
    from roof_agent.probes import Probe, Reading, register

    @register
    class Odd(Probe):
        name = "odd"
        help = "odd"
        def plan(self, context):
            return []
        def measure(self, task):
            match task.subject:
                case "good":
                    print("a library's chatter")
                    return Reading((1.5,), "odd", parameters={"pid": str(os.getpid())})
                case "big":
                    return Reading(tuple(float(n) for n in range(200_000)), "odd")
                case "unavailable":
                    raise Unavailable("it isn't here")
                case "failed":
                    raise MeasurementError("results are wrong")
                case "bug":
                    raise KeyError("bug")
                case "memory":
                    raise MemoryError("2 TiB")
                case "torn":
                    os.write(int(sys.argv[-1]), b'{"before": {')
                    os._exit(3)
                case "exit":
                    os._exit(7)
                case "sleep":
                    with open(task.settings["pidfile"], "w") as file:
                        file.write(str(os.getpid()))
                    time.sleep(60)
                case "environment":
                    return Reading((1.0,), os.environ["OMP_NUM_THREADS"])
                case "oom":
                    return Reading((1.0,), open("/proc/self/oom_score_adj").read().strip())
                case name:
                    os.kill(os.getpid(), getattr(signal, name))
                    time.sleep(5)
"""


@pytest.fixture
def environment(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(CUSTOM)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}


def one(task, environment=os.environ):
    (found,) = measure([task], environment)
    return found


def odd(subject, **settings):
    return Task("odd", subject, "seconds", 1, (0,), 1.0, settings=settings)


def test_a_reading_comes_back_whatever_is_printed(environment):
    found = one(odd("good"), environment)
    assert found.reading.repetitions == (1.5,)
    assert found.reading.parameters["pid"] != str(os.getpid())
    assert found.failed == found.unavailable == ""


def test_the_state_is_read_just_before_and_after(environment):
    found = one(odd("good"), environment)
    assert found.before.monotonic_ns <= found.started_monotonic_ns < found.after.monotonic_ns
    assert 0 < found.elapsed_seconds < 1
    if not native_problem():
        # A clock that ticks as processors' do, measured and not looked up.
        assert 1e8 < found.before.clock_hz < 1e10
        assert 1e8 < found.after.clock_hz < 1e10


def test_a_long_answer_comes_back(environment):
    assert one(odd("big"), environment).reading.repetitions == tuple(map(float, range(200_000)))


def test_unavailable_is_not_a_failure(environment):
    found = one(odd("unavailable"), environment)
    assert (found.reading, found.unavailable, found.failed) == (None, "it isn't here", "")


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ("failed", "results are wrong"),
        ("memory", "not enough memory: 2 TiB"),
        ("bug", "KeyError: 'bug'"),
        ("exit", "ended with status 7"),
        ("SIGKILL", "want of memory"),
        ("SIGILL", "instruction that this processor doesn't have"),
        ("SIGSEGV", "SIGSEGV"),
    ],
)
def test_a_crash_is_a_reason(environment, subject, words):
    found = one(odd(subject), environment)
    assert found.reading is None
    assert words in found.failed
    assert found.before.monotonic_ns < found.after.monotonic_ns


def test_tasks_share_a_child_until_one_ends_it(environment):
    tasks = [odd(subject) for subject in ("good", "unavailable", "good", "SIGSEGV", "good", "exit", "good")]
    found = measure(tasks, environment)
    pids = [answer.reading.parameters["pid"] if answer.reading else "" for answer in found]
    assert pids[0] == pids[2]
    assert len({pids[0], pids[4], pids[6]}) == 3
    assert found[1].unavailable
    assert "SIGSEGV" in found[3].failed
    assert "status 7" in found[5].failed


def test_half_an_answer_is_none(environment):
    good, torn, after = measure([odd("good"), odd("torn"), odd("good")], environment)
    assert good.reading
    assert "status 3" in torn.failed
    assert after.reading


def test_what_takes_too_long_is_stopped(environment, tmp_path, monkeypatch):
    monkeypatch.setattr(Task, "timeout_seconds", 1.0)
    pidfile = tmp_path / "pid"
    good, late = measure([odd("good"), odd("sleep", pidfile=str(pidfile))], environment)
    assert good.reading
    assert "hadn't ended after 2 s" in late.failed
    assert gone(int(pidfile.read_text()))


def test_stopping_the_agent_ends_the_child(environment, tmp_path):
    pidfile = tmp_path / "pid"

    class Interrupted(Exception):  # noqa: N818
        pass

    def interrupt():
        wait_for(pidfile.exists)
        os.kill(os.getpid(), signal.SIGUSR1)

    def stop(*_):
        raise Interrupted

    begin = time.monotonic()
    former = signal.signal(signal.SIGUSR1, stop)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(Interrupted):
            measure([odd("sleep", pidfile=str(pidfile))], environment)
    finally:
        signal.signal(signal.SIGUSR1, former)
    assert gone(int(pidfile.read_text()))
    # Ended, and not waited for.
    assert time.monotonic() - begin < 30


def test_a_killed_agent_leaves_no_child(environment, tmp_path):
    pidfile = tmp_path / "pid"
    code = (
        "from roof_agent.child import measure; from roof_agent.probes import Task;"
        f"measure([Task('odd', 'sleep', 'seconds', 1, (0,), 1.0, settings={{'pidfile': {str(pidfile)!r}}})])"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], env=environment)
    wait_for(lambda: pidfile.exists() and pidfile.read_text())
    parent.kill()
    parent.wait()
    assert wait_for(lambda: gone(int(pidfile.read_text())))


def test_libraries_threads_are_held_back(environment):
    assert one(odd("environment"), environment).reading.backend == "1"


def test_memory_runs_out_on_the_child(environment):
    assert one(odd("oom"), environment).reading.backend == "1000"


def test_a_real_probe():
    budget = {"warmup_seconds": 0.0, "budget_seconds": 0.1, "min_repetitions": 3, "repetition_seconds": 0.02}
    task = Task(
        "peak", "fma", "flops_per_s", 1, (min(os.sched_getaffinity(0)),), 1.0, "float32",
        settings={"kernel": "fma", "working_set_bytes": 0, "backend": "numpy", **budget},
    )  # fmt: skip
    found, wrong = measure([task, replace(task, cpus=(4095,))])
    assert found.reading.backend == "numpy"
    assert min(found.reading.repetitions) > 1e6
    assert found.cpu_seconds > 0.05
    assert "cpu 4095" in wrong.failed


def test_native_problem_is_empty_or_says_why():
    from roof_agent.kernels.native import LIBRARY

    assert (native_problem() == "") == LIBRARY.exists()


def gone(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
    return True
