"""Measurements in a fresh process.

A crash, an illegal instruction or the OOM killer costs one measurement and not the agent, and the parent
stays small. Tasks go in as JSON on standard input; answers come back as JSON lines in an anonymous
file, since libraries print to standard output and a pipe would have to be drained meanwhile.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from roof_agent.documents import from_document, to_document
from roof_agent.errors import MeasurementError, RoofError, Unavailable
from roof_agent.platform import conditions
from roof_agent.platform.clock import clock_hz
from roof_agent.probes import Answer, Reading, Task, all_probes

# A thread pool of the numerical library beside pinned measuring threads would fight them for CPUs.
_ENVIRONMENT = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_STDERR_BYTES = 2000


def measure(tasks: Sequence[Task], environment: Mapping[str, str] = os.environ) -> list[Answer]:
    """Measure tasks in a child, and one answer each; what a crash left over goes to another child."""
    answers: list[Answer] = []
    while len(answers) < len(tasks):
        left = tasks[len(answers) :]
        before, started_ns = conditions.sample(), time.monotonic_ns()
        found, problem = _one_child(left, environment)
        answers += found
        if problem:
            elapsed = (time.monotonic_ns() - started_ns) / 1e9
            answers.append(Answer(before, conditions.sample(), started_ns, elapsed, 0.0, failed=problem))
    return answers


def _one_child(tasks: Sequence[Task], environment: Mapping[str, str]) -> tuple[list[Answer], str]:
    """Return the answers of a child, and what ended it before it had answered all."""
    timeout = sum(task.timeout_seconds for task in tasks)
    with os.fdopen(os.memfd_create("answers"), "w+b") as file:
        child = subprocess.Popen(
            [sys.executable, "-m", "roof_agent.child", str(file.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(file.fileno(),),
            env={**environment, **_ENVIRONMENT},
        )
        late = False
        with child:
            try:
                _, complaint = child.communicate(json.dumps(to_document(list(tasks))).encode(), timeout)
            except subprocess.TimeoutExpired:
                late = True
                child.kill()
                _, complaint = child.communicate()
            except BaseException:
                # The run is being stopped: nothing may go on measuring behind it.
                child.kill()
                raise
        answers = list(_answers(file))
    if len(answers) == len(tasks):
        return answers, ""
    if late:
        return answers, f"it hadn't ended after {timeout:.0f} s and was stopped"
    return answers, _death(child.returncode, complaint[-_STDERR_BYTES:].decode("utf-8", "replace").strip())


def _answers(file: BinaryIO) -> Iterator[Answer]:
    file.seek(0)
    for line in file:
        # A line that was being written when the child died is none.
        if line.endswith(b"\n"):
            yield from_document(Answer, json.loads(line))


def native_problem() -> str:
    """Return why the compiled kernels don't load here, tried in a child; empty where they do."""
    code = "from roof_agent.kernels import load; load('native')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    last = (done.stderr.strip().splitlines() or [_death(done.returncode, "")])[-1]
    return last.partition("Unavailable: ")[2] or last


def _death(status: int, complaint: str) -> str:
    last = complaint.splitlines()[-1] if complaint else ""
    if status == -signal.SIGKILL:
        return "its process was killed, most likely for want of memory"
    if status == -signal.SIGILL:
        return "its process met an instruction that this processor doesn't have"
    if status < 0:
        return f"its process ended with {signal.Signals(-status).name}{': ' + last if last else ''}"
    return f"its process ended with status {status}{': ' + last if last else ''}"


def answer(task: Task) -> Answer:
    """Measure one task in this process, with the board's state before and after."""
    # The clock outside of the samples, so that nothing but the task lies between them.
    first_hz = _clock_hz(task)
    before = replace(conditions.sample(), clock_hz=first_hz)
    started_ns, cpu_seconds = time.monotonic_ns(), time.process_time()
    reading: Reading | None = None
    unavailable = failed = ""
    try:
        reading = all_probes()[task.probe].measure(task)
    except Unavailable as error:
        unavailable = str(error)
    except MeasurementError as error:
        failed = str(error)
    except RoofError as error:
        failed = f"{type(error).__name__}: {error}"
    except MemoryError as error:
        failed = f"not enough memory: {error}"
    cpu_seconds = time.process_time() - cpu_seconds
    elapsed = (time.monotonic_ns() - started_ns) / 1e9
    after = conditions.sample()
    if reading is not None:
        after = replace(after, clock_hz=_clock_hz(task))
    return Answer(before, after, started_ns, elapsed, cpu_seconds, reading, unavailable, failed)


def _clock_hz(task: Task) -> float | None:
    return clock_hz(task.cpus[0]) if task.cpus else None


def _die_with_parent() -> None:
    """Have the kernel end this process with the agent, even one that was killed without a chance to."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def main() -> None:
    """Measure the tasks on standard input; answer on the file descriptor named as argument."""
    # Ctrl-C goes to the whole foreground group; the parent decides what becomes of the child.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    with contextlib.suppress(OSError):
        # Where memory runs out this process is the one to end, and the agent reports it.
        Path("/proc/self/oom_score_adj").write_text("1000")
    jobs: list[Any] = json.load(sys.stdin)
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as file:
        for job in jobs:
            file.write(json.dumps(to_document(answer(from_document(Task, job)))) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
