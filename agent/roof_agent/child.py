"""One measurement in a fresh process.

A crash, an illegal instruction or the OOM killer costs that measurement and not the agent, and the
parent stays small. The task goes in as JSON on standard input; the answer comes back as JSON in an
anonymous file, since libraries print to standard output and a pipe would have to be drained.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roof_agent.documents import from_document, to_document
from roof_agent.errors import MeasurementError, RoofError, Unavailable
from roof_agent.probes import Reading, Task, all_probes

# A thread pool of the numerical library beside pinned measuring threads would fight them for CPUs.
_ENVIRONMENT = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_STDERR_BYTES = 2000


def measure(task: Task, environment: Mapping[str, str] = os.environ) -> Reading:
    """Measure a task in a child. Raises Unavailable or MeasurementError with the reason."""
    with os.fdopen(os.memfd_create("answer"), "w+b") as answer:
        child = subprocess.Popen(
            [sys.executable, "-m", "roof_agent.child", str(answer.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(answer.fileno(),),
            env={**environment, **_ENVIRONMENT},
        )
        late = False
        with child:
            try:
                _, complaint = child.communicate(json.dumps(to_document(task)).encode(), task.timeout_seconds)
            except subprocess.TimeoutExpired:
                late = True
                child.kill()
                _, complaint = child.communicate()
            except BaseException:
                # The run is being stopped: nothing may go on measuring behind it.
                child.kill()
                raise
        answer.seek(0)
        document = answer.read()
    if late:
        raise MeasurementError(f"it hadn't ended after {task.timeout_seconds:.0f} s and was stopped")
    if child.returncode or not document:
        last_words = complaint[-_STDERR_BYTES:].decode("utf-8", "replace").strip()
        raise MeasurementError(_death(child.returncode, last_words))
    return _reading(json.loads(document))


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


def _reading(document: dict[str, Any]) -> Reading:
    if "unavailable" in document:
        raise Unavailable(document["unavailable"])
    if "failed" in document:
        raise MeasurementError(document["failed"])
    return from_document(Reading, document["reading"])


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    task = from_document(Task, job)
    try:
        reading = all_probes()[task.probe].measure(task)
    except Unavailable as error:
        return {"unavailable": str(error)}
    except RoofError as error:
        return {"failed": str(error)}
    except MemoryError as error:
        return {"failed": f"not enough memory: {error}"}
    return {"reading": to_document(reading)}


def _die_with_parent() -> None:
    """Have the kernel end this process with the agent, even one that was killed without a chance to."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def main() -> None:
    """Measure the task on standard input and answer on the file descriptor named as argument."""
    # Ctrl-C goes to the whole foreground group; the parent decides what becomes of the child.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    with contextlib.suppress(OSError):
        # Where memory runs out this process is the one to end, and the agent reports it.
        Path("/proc/self/oom_score_adj").write_text("1000")
    document = _answer(json.load(sys.stdin))
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as answer:
        json.dump(document, answer)


if __name__ == "__main__":
    main()
