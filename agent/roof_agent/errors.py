"""Exit codes and the errors that end in one line for the user.

RoofError                 any error of this project
UserError               one line and an exit code; never a traceback
UsageError            the command line or a file named on it is wrong (2)
UnreachableError      no collector answers (3)
UnfitEnvironmentError this machine can't do what was asked (4)
Unavailable             a probe can't run on this device; not a failure
MeasurementError        a measurement failed; the run goes on
"""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """Exit codes of both programs; numbers are never reused."""

    OK = 0
    PARTIAL = 1
    USAGE = 2
    UNREACHABLE = 3
    ENVIRONMENT = 4
    THRESHOLD = 5
    INTERRUPTED = 130
    TERMINATED = 143


EXIT_HELP: dict[Exit, str] = {
    Exit.OK: "everything that was asked for was done",
    Exit.PARTIAL: "some measurement failed; the others are there",
    Exit.USAGE: "the command line, or a file it names, is wrong",
    Exit.UNREACHABLE: "no collector answered, results are kept; analyze --strict: an operator isn't counted",
    Exit.ENVIRONMENT: "this machine can't do what was asked",
    Exit.THRESHOLD: "a threshold given on the command line was breached",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
    Exit.TERMINATED: "stopped by SIGTERM",
}


class RoofError(Exception):
    """Base of the project's errors."""


class UserError(RoofError):
    """An error that a person can mend: its message is the one line they see."""

    exit_code = Exit.USAGE


class UsageError(UserError):
    """The command line, or a file named on it, is wrong."""


class UnreachableError(UserError):
    """No collector answered."""

    exit_code = Exit.UNREACHABLE


class UnfitEnvironmentError(UserError):
    """This machine can't do what was asked."""

    exit_code = Exit.ENVIRONMENT


class Unavailable(RoofError):  # noqa: N818 - an outcome, not an error
    """What a probe needs isn't on this device; the message says what is missing."""


class MeasurementError(RoofError):
    """A measurement failed; the message says why."""
