"""What a page answers when it can't show what was asked for."""

from __future__ import annotations

from roof_agent.errors import RoofError


class PageError(RoofError):
    """One clear line for the viewer, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
