"""Reading the small files of /proc and /sys, any of which may be missing on a board."""

from __future__ import annotations

from pathlib import Path


def text(path: Path) -> str | None:
    """Return a file's text without its trailing NUL and white space, None where it can't be read."""
    try:
        return path.read_bytes().decode("utf-8", "replace").rstrip("\0\n\t ")
    except OSError:
        return None


def integer(path: Path, base: int = 10) -> int | None:
    """Return a file's integer, None where there is none."""
    content = text(path)
    try:
        return int(content, base) if content else None
    except ValueError:
        return None


def cpu_list(content: str | None) -> tuple[int, ...]:
    """Return the CPUs of a kernel list such as "0-3,7"; empty for anything else."""
    cpus: list[int] = []
    try:
        for part in (content or "").split(","):
            first, _, last = part.strip().partition("-")
            if first:
                cpus.extend(range(int(first), int(last or first) + 1))
    except ValueError:
        return ()
    return tuple(cpus)


def device_tree(root: Path, name: str) -> Path:
    """Return the path of a device tree's property; containers may hide either of its two places."""
    first = root / "proc/device-tree" / name
    return first if first.exists() else root / "sys/firmware/devicetree/base" / name
