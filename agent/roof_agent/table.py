"""The tables that a run ends with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from roof_agent.records import Device, Grade, Measurement, Outcome
from roof_agent.units import format_si, quantity

_BOLD, _DIM, _RED = 1, 2, 31
# Parameters that tell rows apart; the others are in --json.
_TELLING = ("store", "level", "isa", "optimization")

Paint = Callable[[str, int], str]


def render(device: Device, measurements: Sequence[Measurement], *, color: bool = False) -> str:
    """Return the tables of a run, one a probe, then the ridge and what to know about the figures."""
    paint = _paint if color else _plain
    blocks = [_header(device, measurements)]
    for probe in dict.fromkeys(measurement.probe for measurement in measurements):
        own = [measurement for measurement in measurements if measurement.probe == probe]
        blocks.append(_probe_table(probe, own, paint))
    blocks += [text for text in (_ridge(measurements), _remarks(measurements, paint)) if text]
    return "\n\n".join(blocks) + "\n"


def _paint(text: str, code: int) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _plain(text: str, _code: int) -> str:
    return text


def columns(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Return rows as lines with aligned columns, the first to the left, the others to the right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return [
        gap.join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def describe_device(device: Device) -> str:
    """Return the board in one line."""
    cores = " + ".join(f"{len(cluster.cpus)} x {cluster.core or 'core'}" for cluster in device.clusters)
    facts = (
        device.model if device.model not in cores else "",
        device.soc,
        cores,
        f"{device.memory_bytes / (1 << 20):.0f} MiB" if device.memory_bytes else "",
        device.virtualization if device.virtualization != "none" else "",
    )
    return ", ".join(fact for fact in facts if fact)


def _header(device: Device, measurements: Iterable[Measurement]) -> str:
    backends = dict.fromkeys(
        " ".join(word for word in (found.backend, found.isa) if word)
        for found in measurements
        if found.backend
    )
    lines = [describe_device(device)]
    if backends:
        lines.append(f"measured with {', '.join(backends)}")
    return "\n".join(lines)


def _probe_table(probe: str, measurements: Sequence[Measurement], paint: Paint) -> str:
    lines = [paint(probe, _BOLD)]
    good = [found for found in measurements if found.outcome is Outcome.OK]
    if good:
        head = ("", "type", "threads", "best", "median", "95 % of the median", "n", "grade")
        heading, *body = columns([head, *(_row(found) for found in good)])
        lines.append(heading)
        for line, found in zip(body, good, strict=True):
            lines.append(line if found.grade is Grade.CLEAN else paint(line, _DIM))
    for found in measurements:
        if found.outcome is not Outcome.OK:
            what = " ".join(word for word in (found.subject, found.element_type) if word)
            line = f"{what + ' ' if what else ''}{found.outcome.value}: {found.reason}"
            lines.append(paint(line, _RED) if found.outcome is Outcome.FAILED else line)
    return "\n".join(lines)


def _row(measurement: Measurement) -> tuple[str, ...]:
    found = measurement.statistics
    assert found is not None
    unit = quantity(measurement.quantity)
    telling = (measurement.parameters.get(key, "") for key in _TELLING)
    return (
        " ".join(word for word in (measurement.subject, *telling) if word),
        measurement.element_type,
        str(measurement.threads or ""),
        unit.format(measurement.best or 0.0),
        unit.format(found.median),
        f"{unit.format(found.ci_low)} .. {unit.format(found.ci_high)}",
        str(found.n),
        measurement.grade.value if measurement.grade else "",
    )


def _ridge(measurements: Sequence[Measurement]) -> str:
    """Return peak / bandwidth for each type and thread count: below it, memory binds."""
    lines = []
    roofs = {
        (found.element_type, found.threads): found.best
        for found in measurements
        if found.probe == "peak" and found.best
    }
    for (element_type, threads), peak in roofs.items():
        traffic = [
            found.best
            for found in measurements
            if found.probe == "bandwidth" and found.threads == threads and found.best
        ]
        if traffic:
            lines.append(
                f"ridge {element_type}, {threads} thread{'s' * (threads != 1)}: "
                f"{peak / max(traffic):.1f} FLOP/B "
                f"({format_si(peak, 'FLOP/s')} by {format_si(max(traffic), 'B/s')})"
            )
    return "\n".join(lines)


def _remarks(measurements: Sequence[Measurement], paint: Paint) -> str:
    """Return each reason for which figures aren't clean, with how many it concerns."""
    graded = [found for found in measurements if found.grade not in {None, Grade.CLEAN}]
    if not graded:
        return ""
    counts: dict[str, int] = {}
    for found in graded:
        verdict = found.grade.value if found.grade else ""
        counts[verdict] = counts.get(verdict, 0) + 1
    total = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    worst = graded[0].grade_reasons
    line = f"not clean: {total} of {len(measurements)} (for one: {'; '.join(worst)})"
    return paint(line, _DIM)
