"""Settings of a run: one table of options, from which flags, `ROOF_*` variables and TOML keys are made.

A flag goes before the environment, that before the file, that before the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roof_agent.errors import UsageError
from roof_agent.platform.files import cpu_list
from roof_agent.presets import DEFAULT, PRESETS

CONFIG_FILES = ("~/.config/roofline/agent.toml", "/etc/roofline/agent.toml")


@dataclass(frozen=True)
class Settings:
    """What a run does; a field an option."""

    collector: str | None
    insecure: bool
    preset: str
    probe: tuple[str, ...]
    no_probe: tuple[str, ...]
    model: tuple[Path, ...]
    bind: dict[str, int]
    input: dict[str, Path]
    threads: tuple[int, ...]
    cpus: tuple[int, ...]
    backend: str
    interval: float | None
    duration: float | None
    output: Path | None
    trace: Path | None
    json: bool
    label: dict[str, str]
    strict: bool
    spool: Path | None
    quiet: bool
    verbose: bool
    log_format: str
    no_color: bool


@dataclass(frozen=True)
class Option:
    """An option of a run; `parse` reads one value and raises ValueError with what would be right.

    `many`: it can be given several times, or as a list separated by commas.
    """

    name: str
    parse: Callable[[str], Any]
    metavar: str
    default: Any
    help: str
    many: bool = False
    choices: tuple[str, ...] = ()
    short: str = ""

    @property
    def flag(self) -> str:
        """Return its flag."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Return its environment variable."""
        return "ROOF_" + self.name.upper()

    @property
    def is_switch(self) -> bool:
        """Return whether its flag takes no value."""
        return self.default is False

    def read(self, values: list[str], source: str) -> Any:
        """Return the value of this option. Raises UsageError that names the source."""
        parse = self._choice if self.choices else self.parse
        try:
            parsed = [parse(value) for value in values]
        except ValueError as error:
            raise UsageError(f"{source}: {', '.join(values)!r} isn't right, it takes {error}") from error
        if isinstance(self.default, dict):
            return dict(pair for pair in parsed if isinstance(pair, tuple))
        if self.many:
            return tuple(item for part in parsed for item in (part if isinstance(part, tuple) else (part,)))
        return parsed[-1]

    def _choice(self, value: str) -> str:
        if value not in self.choices:
            raise ValueError(f"one of {', '.join(self.choices)}")
        return value


def _threads(value: str) -> int:
    if value == "all":
        return 0
    if value.isdigit() and int(value) > 0:
        return int(value)
    raise ValueError("numbers of threads, or all")


def _cpus(value: str) -> tuple[int, ...]:
    found = cpu_list(value)
    if not found:
        raise ValueError("CPUs such as 0,2-3")
    return found


def seconds(value: str) -> float:
    """Return the seconds of 90, 90s, 5m or 2h. Raises ValueError."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    digits, unit = (value[:-1], value[-1]) if value[-1:] in units else (value, "s")
    try:
        found = float(digits) * units[unit]
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise ValueError("a time such as 90, 90s, 5m or 2h")
    return found


def _switch(value: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False}
    try:
        return {**known, "off": False, "": False}[value.lower()]
    except KeyError:
        raise ValueError("true or false") from None


def _pair(value: str) -> tuple[str, str]:
    key, equals, text = value.partition("=")
    if not equals or not key:
        raise ValueError("KEY=VALUE")
    return key, text


def _count(value: str) -> tuple[str, int]:
    name, _, count = value.rpartition("=")
    if not name or not count.isdigit() or not int(count):
        raise ValueError("NAME=N")
    return name, int(count)


def _file_of(value: str) -> tuple[str, Path]:
    name, _, path = value.partition("=")
    if not name or not path:
        raise ValueError("NAME=FILE")
    return name, Path(path)


OPTIONS = (
    Option("collector", str, "HOST:PORT", None, "send the results to this collector, and take its plan"),
    Option("insecure", _switch, "", False, "allow a collector off this machine without encryption"),
    Option("preset", str, "PRESET", DEFAULT, "how long to measure", choices=PRESETS),
    Option("probe", str, "NAME", (), "run only this probe", many=True),
    Option("no_probe", str, "NAME", (), "leave this probe out", many=True),
    Option("model", Path, "FILE", (), "measure this ONNX network too; its weights stay here", many=True),
    Option("bind", _count, "NAME=N", {}, "an open dim of the inputs of each --model (default: 1)", many=True),
    Option("input", _file_of, "NAME=FILE", {}, "feed this .npy file to an input of each --model", many=True),
    Option("threads", _threads, "N", (), "thread counts, or all (default: 1 and all)", many=True),
    Option("cpus", _cpus, "LIST", (), "measure on these CPUs only, such as 0,2-3", many=True),
    Option("backend", str, "NAME", "", "kernels to measure with", choices=("native", "numpy")),
    Option("interval", seconds, "TIME", None, "go on, and begin a run every TIME (90s, 5m, 2h)"),
    Option("duration", seconds, "TIME", None, "stretch or shrink the measurements to take TIME altogether"),
    Option("output", Path, "FILE", None, "append everything as JSON lines"),
    Option("trace", Path, "FILE", None, "write the run as a Chrome trace, to be seen in Perfetto"),
    Option("json", _switch, "", False, "print one JSON document instead of tables"),
    Option("label", _pair, "KEY=VALUE", {}, "label the run", many=True),
    Option("strict", _switch, "", False, "refuse to start where something would disturb the figures (exit "
           "code 4), and end with 5 where a figure isn't clean"),
    Option("spool", Path, "FOLDER", None, "keep results here until the collector has them"),
    Option("quiet", _switch, "", False, "only warnings and results", short="-q"),
    Option("verbose", _switch, "", False, "say more", short="-v"),
    Option("log_format", str, "FORMAT", "text", "format of the logs", choices=("text", "json")),
    Option("no_color", _switch, "", False, "no colours (NO_COLOR does the same)"),
)  # fmt: skip


def resolve(
    flags: Mapping[str, list[str]], environ: Mapping[str, str], config: Path | None = None
) -> Settings:
    """Return the settings. Raises UsageError for a value, a key or a file that is wrong.

    `flags` are the values given on the command line, `config` the file named there.
    """
    file, filename = _read_file(config, environ)
    values: dict[str, Any] = {}
    for option in OPTIONS:
        text = environ.get(option.variable)
        if option.name in flags:
            values[option.name] = option.read(flags[option.name], option.flag)
        elif text is not None:
            values[option.name] = option.read(text.split(",") if option.many else [text], option.variable)
        elif option.name in file:
            values[option.name] = option.read(_strings(file[option.name]), f"{filename}: {option.name}")
        else:
            values[option.name] = option.default
    values["no_color"] = values["no_color"] or bool(environ.get("NO_COLOR"))
    return Settings(**values)


def _read_file(config: Path | None, environ: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    named = config or (Path(environ["ROOF_CONFIG"]) if environ.get("ROOF_CONFIG") else None)
    usual = [path for path in (Path(name).expanduser() for name in CONFIG_FILES) if path.exists()]
    path = named or next(iter(usual), None)
    if path is None:
        return {}, ""
    # Loaded where there is a file only: the agent starts in less time than that takes.
    import tomllib

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} isn't TOML: {error}") from error
    known = {option.name for option in OPTIONS}
    unknown = sorted(set(document) - known)
    if unknown:
        raise UsageError(f"{path} has an unknown key {unknown[0]}; it may have {', '.join(sorted(known))}")
    return document, str(path)


def _strings(value: Any) -> list[str]:
    """Return a TOML value as the command line would give it."""
    if isinstance(value, dict):
        return [f"{key}={item}" for key, item in value.items()]
    if isinstance(value, list):
        return [str(item) for item in value]
    return [str(value).lower() if isinstance(value, bool) else str(value)]
