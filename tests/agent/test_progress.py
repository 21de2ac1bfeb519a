"""Progress and logs: one redrawn line on a terminal, plain or JSON lines elsewhere."""

import io
import json
import logging

import pytest

from roof_agent.progress import Progress, set_up_logging
from roof_agent.records import Grade, Measurement, Outcome
from roof_agent.statistics import summarize

GOOD = Measurement(
    "peak", "fma", "flops_per_s", Outcome.OK, statistics=summarize([1e9, 2e9]), grade=Grade.NOISY,
    grade_reasons=("others ran",), threads=2,
)  # fmt: skip
BAD = Measurement("peak", "fma", "flops_per_s", Outcome.FAILED, reason="it broke")


@pytest.fixture(autouse=True)
def loggers_put_back():
    roots = [logging.getLogger("roof_agent"), logging.getLogger("roof_agent.run")]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in roots]
    yield
    for logger, (handlers, level, propagate) in zip(roots, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


def shown(capsys, *, redraw, **how):
    set_up_logging(
        quiet=how.get("quiet", False), verbose=how.get("verbose", False), as_json=how.get("as_json", False),
        redraw=redraw,
    )  # fmt: skip
    progress = Progress(redraw=redraw)
    progress.begins(2, 9, "peak fma", 61.0)
    progress.ended(GOOD)
    progress.ended(BAD)
    progress.clear()
    return capsys.readouterr().err


def test_plain_lines(capsys):
    assert shown(capsys, redraw=False) == (
        "3/9 peak fma 2 threads: 2.000 GFLOP/s, noisy (others ran)\nwarning: 3/9 peak fma: failed: it broke\n"
    )


def test_a_terminal_has_one_line_and_failures(capsys):
    text = shown(capsys, redraw=True)
    assert text.startswith("\r\x1b[K[3/9] peak fma, about 1 min 1 s left")
    assert "2.000 GFLOP/s" not in text
    assert "warning: 3/9 peak fma: failed: it broke\n" in text
    assert text.endswith("\r\x1b[K")


def test_quiet_and_verbose(capsys):
    assert "GFLOP/s" not in shown(capsys, redraw=False, quiet=True)
    assert "GFLOP/s" in shown(capsys, redraw=True, verbose=True)


def test_json_lines(capsys):
    lines = [json.loads(line) for line in shown(capsys, redraw=False, as_json=True).splitlines()]
    assert [(line["level"], line["logger"]) for line in lines] == [
        ("info", "roof_agent.run"),
        ("warning", "roof_agent.run"),
    ]
    assert lines[0]["message"].startswith("3/9 peak fma")


def test_a_long_line_is_cut_to_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    Progress(stream, redraw=True).begins(0, 1, "x" * 100, 1.0)
    assert len(stream.getvalue().removeprefix("\r\x1b[K")) == 19
