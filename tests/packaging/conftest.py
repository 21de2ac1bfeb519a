"""Wheels built from this checkout, each once."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def build(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel of the checkout into `folder`."""
    return subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def built(folder: Path, **environment: str) -> Path:
    """Build a wheel and return its path."""
    result = build(folder, **environment)
    assert result.returncode == 0, result.stdout + result.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session", name="build")
def build_fixture() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`build(folder, **environment)` for tests that look at the outcome themselves."""
    return build


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel as this machine builds it."""
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def twin_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel as a machine without a compiler builds it."""
    return built(tmp_path_factory.mktemp("twin"), CC="/nonexistent")
