"""The tables that a run ends with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from roof_agent.records import Device, Grade, Measurement, Outcome
from roof_agent.roofs import QUANTILE, evidence
from roof_agent.units import format_si, quantity

_BOLD, _DIM, _RED = 1, 2, 31
# Parameters that tell rows apart; the others are in --json.
_TELLING = ("store", "isa")

Paint = Callable[[str, int], str]


def render(device: Device, measurements: Sequence[Measurement], *, color: bool = False) -> str:
    """Return the tables of a run, one a probe, then the ridge and what to know about the figures."""
    paint = _paint if color else _plain
    blocks = [_header(device, measurements)]
    # What there are figures of comes first.
    by_outcome = sorted(measurements, key=lambda found: found.outcome is not Outcome.OK)
    for probe in dict.fromkeys(found.probe for found in by_outcome):
        own = [found for found in measurements if found.probe == probe]
        lines = [paint(probe, _BOLD), *_level_lines(own, paint), *_lines(own, paint), *_problems(own, paint)]
        blocks.append("\n".join(lines))
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


def _lines(measurements: Sequence[Measurement], paint: Paint) -> list[str]:
    """Return a line for each result that isn't a point of a curve."""
    good = [found for found in measurements if found.outcome is Outcome.OK and not _is_point(found)]
    if not good:
        return []
    head = ("", "type", "threads", "best", "median", "95 % of the median", "n", "grade")
    heading, *body = columns([head, *(_row(found) for found in good)])
    lines = (
        line if found.grade is Grade.CLEAN else paint(line, _DIM)
        for line, found in zip(body, good, strict=True)
    )
    return [heading, *lines]


def _is_point(measurement: Measurement) -> bool:
    return "level" in measurement.parameters


def _level_lines(measurements: Sequence[Measurement], paint: Paint) -> list[str]:
    """Return a line for each curve: its best figure in each level of the memory."""
    points = [
        found
        for found in measurements
        if found.outcome is Outcome.OK and found.best is not None and found.parameters.get("level")
    ]
    if not points:
        return []
    levels = sorted({found.parameters["level"] for found in points}, key=lambda name: (name == "DRAM", name))
    curves: dict[tuple[str, ...], list[Measurement]] = {}
    for found in points:
        curves.setdefault(_row_name(found), []).append(found)
    rows = [("best in each level", "type", "threads", *levels)]
    for name, curve in curves.items():
        unit = quantity(curve[0].quantity)
        choose = max if unit.higher_is_better else min
        cells = []
        for level in levels:
            figures = [found.best for found in curve if found.parameters["level"] == level and found.best]
            cells.append(unit.format(choose(figures)) if figures else "")
        rows.append((*name, *cells))
    heading, *body = columns(rows)
    clean = [all(found.grade is Grade.CLEAN for found in curve) for curve in curves.values()]
    lines = (line if fine else paint(line, _DIM) for line, fine in zip(body, clean, strict=True))
    return [heading, *lines]


def _problems(measurements: Sequence[Measurement], paint: Paint) -> list[str]:
    """Return a line for each different reason for which there is no result."""
    lines = []
    for found in measurements:
        if found.outcome is not Outcome.OK:
            what = " ".join(word for word in (found.subject, found.element_type) if word)
            line = f"{what + ' ' if what else ''}{found.outcome.value}: {found.reason}"
            lines.append(paint(line, _RED) if found.outcome is Outcome.FAILED else line)
    return list(dict.fromkeys(lines))


def _row_name(measurement: Measurement) -> tuple[str, str, str]:
    telling = (measurement.parameters.get(key, "") for key in _TELLING)
    name = " ".join(word for word in (measurement.subject, *telling) if word)
    fmas = measurement.parameters.get("fmas")
    if fmas:
        name += f" {fmas} multiply-adds"
    return name, measurement.element_type, str(measurement.threads or "")


def _row(measurement: Measurement) -> tuple[str, ...]:
    found = measurement.statistics
    assert found is not None
    unit = quantity(measurement.quantity)
    return (
        *_row_name(measurement),
        unit.format(measurement.best or 0.0),
        unit.format(found.median),
        f"{unit.format(found.ci_low)} .. {unit.format(found.ci_high)}",
        str(found.n),
        measurement.grade.value if measurement.grade else "",
    )


def _ridge(measurements: Sequence[Measurement]) -> str:
    """Return peak / bandwidth for each type and thread count: below it, memory binds."""
    roofs: dict[tuple[str, str, int], tuple[int, float]] = {}
    for found in measurements:
        own = evidence(found)
        if own:
            # Traffic has no element type.
            key = (found.probe, found.element_type if found.probe == "peak" else "", found.threads)
            roofs[key] = max(own, roofs.get(key, own))
    lines = []
    for (probe, element_type, threads), (_, peak) in roofs.items():
        if probe == "peak" and ("bandwidth", "", threads) in roofs:
            _, bandwidth = roofs["bandwidth", "", threads]
            lines.append(
                f"ridge {element_type}, {threads} thread{'s' * (threads != 1)}: "
                f"{peak / bandwidth:.2f} FLOP/B "
                f"({format_si(peak, 'FLOP/s')} by {format_si(bandwidth, 'B/s')}, "
                f"{QUANTILE:.0%} quantiles of what was reached)"
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
