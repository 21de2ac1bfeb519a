"""Templates and static files of the collector's pages."""

from __future__ import annotations

from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
STATIC = Path(__file__).parent / "static"
VENDOR = STATIC / "vendor"
