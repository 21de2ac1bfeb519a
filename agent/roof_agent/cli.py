"""The command line of `roof-agent`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roof_agent import __version__
from roof_agent.config import OPTIONS, Option
from roof_agent.errors import EXIT_HELP, Exit, UserError

_EPILOG = (
    "Without a verb it runs. Each option of run can be set by a variable ROOF_OPTION or in agent.toml too "
    "(flag before variable before file).\n\nexit codes:\n"
    + "\n".join(f"  {code.value:3}  {words}" for code, words in EXIT_HELP.items())
)

_VERBS = {
    "run": "measure, and show or send the results (the default)",
    "list": "list the probes",
    "describe": "explain a probe: what it does and how to read it",
    "info": "show what this board is",
    "doctor": "say what will be measured, what is missing, what will disturb the figures",
    "send": "send what waits in the spool",
    "completion": "print a shell's completion script",
}


# shtab's FILE, spelled out since it isn't there at run time.
_COMPLETE_FILES = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}


class _Given(argparse.Action):
    """Keeps the values given for an option apart from its default; a switch is given as true."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        flag: str | None = None,
    ) -> None:
        given: dict[str, list[str]] = namespace.given
        value = self.const if self.const is not None else values
        given.setdefault(self.dest, []).append(value)


def parser() -> argparse.ArgumentParser:
    """Return the whole command line's parser; completion scripts and documents are made from it."""
    top = argparse.ArgumentParser(
        prog="roof-agent",
        description="Measure what this board can really do with neural networks.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"roof-agent {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    made = {name: verbs.add_parser(name, help=words, description=words) for name, words in _VERBS.items()}
    for verb in made.values():
        verb.set_defaults(given={})
    for option in OPTIONS:
        _add(made["run"], option)
        if option.name in {"collector", "insecure", "spool", "quiet", "verbose", "log_format"}:
            _add(made["send"], option)
    run = made["run"]
    presets = run.add_mutually_exclusive_group()
    for preset, words in (("quick", "half a minute"), ("rigorous", "long, for figures to publish")):
        presets.add_argument(
            f"--{preset}", action=_Given, dest="preset", nargs=0, const=preset, default=argparse.SUPPRESS,
            help=words,
        )  # fmt: skip
    run.add_argument("--dry-run", action="store_true", help="say what would be measured, its time and memory")
    for name in ("run", "send"):
        made[name].add_argument("--config", type=Path, metavar="FILE", help="settings (default: agent.toml)")
    for name in ("list", "info", "doctor"):
        made[name].add_argument("--json", action="store_true", help="print one JSON document")
    made["describe"].add_argument("probe", metavar="PROBE", help="its name, as in the list")
    made["completion"].add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell")
    return top


def _add(verb: argparse.ArgumentParser, option: Option) -> None:
    names = (option.short, option.flag) if option.short else (option.flag,)
    common: dict[str, Any] = {"action": _Given, "dest": option.name, "default": argparse.SUPPRESS}
    if option.is_switch:
        verb.add_argument(*names, nargs=0, const="true", help=option.help, **common)
    elif option.choices:
        verb.add_argument(
            *names, choices=option.choices, metavar=option.metavar,
            help=f"{option.help}: {', '.join(option.choices)}", **common,
        )  # fmt: skip
    else:
        action = verb.add_argument(*names, metavar=option.metavar, help=option.help, **common)
        if option.parse is Path:
            setattr(action, "complete", _COMPLETE_FILES)  # noqa: B010 - an attribute of shtab's


def with_verb(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the default verb where none is given."""
    own = {"--version", "--help", "-h"}
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in own):
        return ["run", *arguments]
    return list(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say and return the exit code; a UserError becomes one line."""
    chosen = parser().parse_args(with_verb(sys.argv[1:] if arguments is None else arguments))
    verb = importlib.import_module(f"roof_agent.verbs.{chosen.verb}")
    try:
        return int(verb.main(chosen))
    except UserError as error:
        sys.stderr.write(f"roof-agent: {error}\n")
        return int(error.exit_code)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read standard output has gone (`| head`); nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
