"""The demo as a person sees it: the real agent and the real runtime, and pages that say the same."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from roof_agent.kernels import load
from roof_agent.units import format_si, quantity

_MACC = {"mobilenet_v1": 568_740_352, "resnet18": 1_814_073_344}


class Demo:
    """A running demo after its tables: what it printed, and its pages' figures."""

    def __init__(self, process: subprocess.Popen[str], text: str, address: str) -> None:
        self.process = process
        self.text = text
        self.address = address

    def json(self, path: str = "") -> Any:
        response = httpx.get(self.address + path + ".json", timeout=30)
        assert response.status_code == 200
        return response.json()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo")
    command = [
        sys.executable,
        "-m",
        "roof_collector.cli",
        "demo",
        "--database",
        f"sqlite:///{folder}/demo.sqlite",
    ]
    tables = folder / "tables.txt"
    with (
        tables.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True) as process,
    ):
        try:
            assert process.stderr is not None
            address = ""
            for line in process.stderr:
                if found := re.match(r"http://\S+", line):
                    address = found[0]
                    break
            assert address, "the demo ended without an address"
            yield Demo(process, tables.read_text(), address)
        finally:
            process.kill()


def test_the_terminal_shows_what_the_page_says(demo: Demo) -> None:
    run = demo.json()
    assert run["run"]["state"] == "complete"
    lines = [" ".join(line.split()) for line in demo.text.splitlines()]
    shown = [row for row in run["measurements"]["rows"] if row["probe"] in {"bandwidth", "peak"} and row["n"]]
    for row in shown:
        unit = quantity(row["quantity"])
        subject = f"{row['subject']} {row['store']}".strip()
        begin = f"{subject} {row['element_type']} {row['threads']} {unit.format(row['best'])}"
        assert any(line.startswith(f"{begin} {unit.format(row['median'])}") for line in lines), begin
    assert {"copy", "scale", "add", "triad"} <= {row["subject"] for row in shown}
    assert {row["element_type"] for row in shown if row["probe"] == "peak"} == {"float32", "float64"}
    backend = load().name
    assert {row["backend"] for row in shown} == {backend}
    assert all(backend in line for line in lines if line.startswith(("copy", "fma", "triad")))


def test_each_network_and_layer_in_the_terminal_is_the_pages(demo: Demo) -> None:
    networks = demo.json()["networks"]["rows"]
    lines = [" ".join(line.split()) for line in demo.text.splitlines()]
    assert {row["name"] for row in networks} == set(_MACC)
    for row in networks:
        assert row["macc"] == _MACC[row["name"]]
        predicted, measured = format_si(row["roofline_seconds"], "s"), format_si(row["measured_seconds"], "s")
        wanted = f"{row['name']} {row['threads']} {row['macc']:,} {predicted} {measured} {row['ratio']:.2f}"
        assert any(line.startswith(wanted) for line in lines), wanted
        document = demo.json(f"/networks/{row['seq']}")
        layers = document["layers"]["rows"]
        assert sum(layer["macc"] for layer in layers) == _MACC[row["name"]]
        assert document["totals"]["unjoined_seconds"] == 0
        for layer in layers:
            seconds = format_si(layer["measured_seconds"], "s")
            begin = f"{layer['name']} {layer['op_type']} {layer['macc']:,} {layer['memory_bytes']:,}"
            assert any(line.startswith(begin) and seconds in line for line in lines), begin


def test_ctrl_c_ends_it(demo: Demo) -> None:
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(timeout=20) == 0
