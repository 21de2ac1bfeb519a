"""What a wheel holds, with a compiler and without one, and what its base install brings."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

LIBRARY = "roof_agent/kernels/_roofkernels.so"
BASE = {"roofline", "grpcio", "protobuf", "psutil", "numpy"}
# What the base install's own requirements bring.
THEIRS = {"typing-extensions"}
INSTALLERS = {"pip", "setuptools"}

needs_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CC", "cc")) is None, reason="no C compiler on this machine"
)


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@needs_compiler
def test_the_native_wheel_serves_every_python_and_holds_the_kernels(wheel: Path) -> None:
    assert "-py3-none-linux_" in wheel.name
    assert LIBRARY in names(wheel)


def test_a_wheel_holds_no_sources_of_the_kernels_and_no_tests(wheel: Path) -> None:
    found = names(wheel)
    assert not [name for name in found if name.endswith((".c", ".h"))]
    assert not [name for name in found if name.startswith("tests")]
    assert [name for name in found if name.endswith("LICENSE")]


def test_without_a_compiler_the_wheel_holds_the_twin_alone(twin_wheel: Path) -> None:
    assert LIBRARY not in names(twin_wheel)
    assert "roof_agent/kernels/__init__.py" in names(twin_wheel)


def test_a_required_library_that_cannot_be_built_is_an_error(
    build: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    result = build(tmp_path, CC="/nonexistent", ROOFLINE_REQUIRE_NATIVE="1")
    assert result.returncode != 0
    assert not list(tmp_path.glob("*.whl"))


def test_the_base_install_is_the_agent_alone(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, capture_output=True)
    listing = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"], check=True, capture_output=True, text=True
    ).stdout
    installed = {row["name"].lower().replace("_", "-") for row in json.loads(listing)}
    assert installed - INSTALLERS == BASE | THEIRS
    version = subprocess.run(
        [python.parent / "roof-agent", "--version"], check=True, capture_output=True, text=True
    ).stdout
    assert version.startswith("roof-agent ")


def test_the_agent_imports_without_what_the_collector_needs() -> None:
    blocked = ("sqlalchemy", "alembic", "fastapi", "scipy", "onnx", "onnxruntime", "roof_collector")
    program = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocked())
import roof_agent, roof_agent.cli, roof_agent.runner, roof_agent.session
"""
    subprocess.run([sys.executable, "-c", program], check=True)
