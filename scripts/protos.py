"""Regenerate the committed protobuf code; with --check, fail where it differs from what is committed.

Run with a Python that has grpcio-tools 1.71.2, the oldest whose output loads on every supported
protobuf (5.29 to 7.x).
"""

from __future__ import annotations

import argparse
import filecmp
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path

GRPCIO_TOOLS = "1.71.2"
ROOT = Path(__file__).resolve().parent.parent / "protos"
PACKAGE = Path("roofline/v1")
# Only this file declares a service; the others' _pb2_grpc modules would be empty.
SERVICES = "session"


def generate(target: Path) -> list[Path]:
    """Write the generated code below `target`; return its paths relative to it."""
    from grpc_tools import protoc

    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / PACKAGE).glob("*.proto"))
    command = ["protoc", f"-I{ROOT}", f"--python_out={target}", f"--pyi_out={target}"]
    if protoc.main([*command, *sources]) != 0:
        sys.exit(1)
    service = str(PACKAGE / f"{SERVICES}.proto")
    if protoc.main(["protoc", f"-I{ROOT}", f"--grpc_python_out={target}", service]) != 0:
        sys.exit(1)
    return sorted(path.relative_to(target) for path in target.rglob("*_pb2*"))


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 on a difference")
    arguments = parser.parse_args()
    installed = metadata.version("grpcio-tools")
    if installed != GRPCIO_TOOLS:
        sys.exit(f"grpcio-tools {installed} is installed; the committed code is made by {GRPCIO_TOOLS}")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        fresh = generate(target)
        committed = sorted(
            path.relative_to(ROOT)
            for path in (ROOT / PACKAGE).iterdir()
            if "_pb2" in path.name and path.is_file()
        )
        stale = [str(path) for path in set(committed) - set(fresh)]
        stale += [
            str(path)
            for path in fresh
            if not (ROOT / path).exists() or not filecmp.cmp(target / path, ROOT / path, shallow=False)
        ]
        if arguments.check:
            if stale:
                sys.exit(f"not what the .proto files give: {', '.join(sorted(stale))}; run scripts/protos.py")
            return 0
        for path in committed:
            (ROOT / path).unlink()
        for path in fresh:
            shutil.copyfile(target / path, ROOT / path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
