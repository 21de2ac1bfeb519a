"""`roof-agent run`: measures, shows, and sends."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from roof_agent import __version__, doctor
from roof_agent import plan as planning
from roof_agent.config import Settings, resolve
from roof_agent.documents import SCHEMA
from roof_agent.errors import Exit, UnfitEnvironmentError, UnreachableError, UsageError
from roof_agent.inference import supplement
from roof_agent.models import guidelines
from roof_agent.output import JsonLines, Results
from roof_agent.platform import conditions
from roof_agent.platform.discovery import available_bytes, boot_id, discover
from roof_agent.probes import LocalModel, label
from roof_agent.progress import Progress, set_up_logging
from roof_agent.records import Device, ModelRef, RunStart
from roof_agent.runner import Runner, Sink, Tally, batches
from roof_agent.stop import Stop, Stopped
from roof_agent.table import columns, describe_device, render
from roof_agent.trace import Trace
from roof_agent.uplink import Uplink, connect

log = logging.getLogger(__name__)


def main(arguments: argparse.Namespace) -> int:
    """Run once, or again and again with --interval, and return the exit code."""
    settings = resolve(arguments.given, os.environ, arguments.config)
    redraw = sys.stderr.isatty() and settings.log_format == "text" and not settings.quiet
    set_up_logging(
        quiet=settings.quiet, verbose=settings.verbose, as_json=settings.log_format == "json", redraw=redraw
    )
    device = discover(labels=settings.label)
    if arguments.dry_run:
        return _dry_run(settings, device)
    if settings.strict:
        _refuse_disturbance(device)
    device = supplement(device, available_bytes() or 0)
    with Stop().listening() as stop:
        return _Command(settings, device, Progress(redraw=redraw), stop).run()


@dataclass
class _Command:
    settings: Settings
    device: Device
    progress: Progress
    stop: Stop
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def run(self) -> int:
        """Run until stopped or, without an interval, once."""
        with connect(self.settings, self.device) as uplink:
            while True:
                begin = self.clock()
                code = self._once(uplink)
                if self.settings.interval is None or code in {Exit.INTERRUPTED, Exit.TERMINATED}:
                    return code
                try:
                    with self.stop.interruptible():
                        self.sleep(max(self.settings.interval - (self.clock() - begin), 0.0))
                except Stopped as stopped:
                    return stopped.exit_code

    def _once(self, uplink: Uplink) -> Exit:
        settings = self.settings
        plan = make_plan(settings, self.device, uplink)
        run_id = str(uuid.uuid4())
        uplink.begin(run_id)
        results = Results(run_id)
        sinks: list[Sink] = [results, uplink]
        lines: JsonLines | None = None
        with ExitStack() as stack:
            if settings.output:
                lines = stack.enter_context(closing(JsonLines(settings.output, run_id)))
                sinks.append(lines)
            if settings.trace:
                sinks.append(stack.enter_context(closing(Trace(settings.trace))))
            stack.callback(self.progress.clear)
            runner = Runner(sinks, [self.progress, uplink], stop=self.stop, quiet=uplink.quiet)
            tally = runner.run(_start(settings, self.device), plan.tasks, plan.refused)
        self._show(results)
        code = self._conclude(tally, uplink)
        return Exit.ENVIRONMENT if code == Exit.OK and lines is not None and lines.failed else code

    def _conclude(self, tally: Tally, uplink: Uplink) -> Exit:
        """Deliver, say what is left to say, and return the exit code."""
        code = Exit.OK
        if tally.failed:
            code = Exit.PARTIAL
        if self.settings.strict and tally.graded:
            log.error("%d measurements aren't clean", tally.graded)
            code = Exit.THRESHOLD
        try:
            uplink.deliver(self.stop)
        except UnreachableError as error:
            log.error("%s", error)  # noqa: TRY400 - a line for the user, not a traceback
            code = Exit.UNREACHABLE
        except Stopped as stopped:
            code = stopped.exit_code
        return tally.stopped.exit_code if tally.stopped else code

    def _show(self, results: Results) -> None:
        if self.settings.json:
            sys.stdout.write(json.dumps(results.document()) + "\n")
        else:
            color = sys.stdout.isatty() and not self.settings.no_color
            sys.stdout.write(render(self.device, results.measurements, color=color))
            sys.stdout.write(guidelines.render(guidelines.verdicts(results.measurements)))
        sys.stdout.flush()


def make_plan(settings: Settings, device: Device, uplink: Uplink) -> planning.RunPlan:
    """Return the plan: the collector's where it has one, what was asked for before that."""
    wish = uplink.plan()
    chosen = planning.probes(wish, settings.probe, settings.no_probe, settings.preset)
    models = [_local_model(path, settings) for path in settings.model]
    if wish is not None:
        models += uplink.models(wish)
    within = planning.context(
        device,
        settings.preset,
        cpus=settings.cpus,
        thread_counts=settings.threads or (wish.threads if wish is not None else ()),
        backend=settings.backend,
        models=models,
    )
    return planning.make(chosen, within, settings.duration)


def _refuse_disturbance(device: Device) -> None:
    """Raise UnfitEnvironmentError where something would disturb the figures."""
    findings = doctor.examine(device, conditions.sample())
    disturbing = [found.what for found in findings if found.kind == doctor.DISTURBS]
    if disturbing:
        raise UnfitEnvironmentError(f"not measuring, as --strict wants: {'; '.join(disturbing)}")


def _local_model(path: Path, settings: Settings) -> LocalModel:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror}") from error
    # Its digest is that of its weightless form, which the measuring child makes.
    return LocalModel(
        ModelRef(path.stem, "", size),
        path.resolve(),
        weightless=False,
        bind=settings.bind,
        inputs={name: file.resolve() for name, file in settings.input.items()},
    )


def _start(settings: Settings, device: Device) -> RunStart:
    return RunStart(
        device=device,
        agent_version=__version__,
        preset=settings.preset,
        boot_id=boot_id(),
        monotonic_ns=time.monotonic_ns(),
        wall_unix_ns=time.time_ns(),
        planned_measurements=0,
        labels=settings.label,
    )


def _dry_run(settings: Settings, device: Device) -> int:
    """Print what would be measured and what that takes."""
    with connect(settings, device) as uplink:
        plan = make_plan(settings, device, uplink)
    if settings.json:
        document = {
            "schema": SCHEMA,
            "measurements": [label(task) for task in plan.tasks],
            "unavailable": {probe.name: str(error) for probe, error in plan.refused},
            "seconds": plan.seconds,
            "memory_bytes": plan.memory_bytes,
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return Exit.OK
    rows = [
        (label(batch[0]), str(len(batch)), f"{sum(task.seconds for task in batch):.1f} s")
        for batch in batches(plan.tasks)
    ]
    lines = [describe_device(device), *columns([("", "points", "time"), *rows])]
    lines += [f"{probe.name} can't be measured: {error}" for probe, error in plan.refused]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.write(
        f"{plan.measurements} measurements, about {plan.seconds:.0f} s, "
        f"at most {plan.memory_bytes / (1 << 20):.0f} MiB\n"
    )
    return Exit.OK
