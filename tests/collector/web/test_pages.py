"""Each page, its JSON and its CSV: there, the same figures, within bounded queries."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import insert, update

from roof_collector.fit.ceilings import ceilings
from roof_collector.store import queries
from roof_collector.store.schema import model, run
from roof_collector.web.app import PAGES
from roof_collector.web.formats import measured, number, shown_unit

MOBILENET_V1_MACC = 568_740_352


@pytest.fixture(scope="module")
def paths(seed: ModuleType) -> dict[str, str]:
    return {
        "devices": "/devices",
        "device": f"/devices/{seed.FINGERPRINT}",
        "run": f"/runs/{seed.RUN_ID}",
        "network": f"/runs/{seed.RUN_ID}/networks/{seed.NETWORK_SEQ}",
    }


@pytest.mark.parametrize("name", ["devices", "device", "run", "network"])
def test_every_page_is_there_in_every_form_and_asks_little(
    site: Any, paths: dict[str, str], name: str
) -> None:
    for address in (paths[name], paths[name] + ".json", paths[name] + ".csv", "/api/v1" + paths[name]):
        site.statements.clear()
        answer = site.client.get(address)
        assert answer.status_code == 200, answer.text
        asked = [statement for statement in site.statements if statement.startswith("SELECT")]
        assert 0 < len(asked) <= 12
    assert site.json(paths[name] + ".json") == site.json("/api/v1" + paths[name])


def test_every_page_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "pages.md").read_text()
    assert [page.path for page in PAGES if f"`{page.path}`" not in text] == []


def test_the_root_is_the_list_of_devices(site: Any) -> None:
    assert "Raspberry Pi 4" in site.page("/").text
    assert site.client.get("/.json", follow_redirects=True).json() == site.json("/devices.json")


def test_the_device_list_shows_the_json_figures(site: Any, seed: ModuleType) -> None:
    (row,) = site.json("/devices.json")["devices"]["rows"]
    cells = site.page("/devices").tables[0][1]
    assert row["fingerprint"] == seed.FINGERPRINT
    assert (row["threads"], row["backend"], row["cores"], row["state"]) == (4, "native", 4, "complete")
    assert number(row["bytes_per_s"], 1e9) in cells
    assert number(row["flops_per_s"], 1e9) in cells
    assert number(row["ridge"]) in cells
    assert row["ridge"] == row["flops_per_s"] / row["bytes_per_s"]


def test_the_ceilings_are_those_of_the_fit(site: Any, paths: dict[str, str]) -> None:
    with site.engine.connect() as connection:
        (found,) = queries.ceiling_measurements(connection, [1]).values()
    document = site.json(paths["device"] + ".json")
    expected = ceilings(found)
    assert [row["value"] for row in document["ceilings"]] == [ceiling.value for ceiling in expected]
    shown = site.page(paths["device"])
    (table,) = [table for table in shown.tables if table[0][0] == "Ceiling"]
    assert [row[3] for row in table[1:]] == [number(ceiling.value, 1e9) for ceiling in expected]


def test_a_device_shows_its_caches_with_where_they_are_known_from(site: Any, paths: dict[str, str]) -> None:
    (table,) = [table for table in site.page(paths["device"]).tables if table[0][0] == "Level"]
    assert table[1:] == [
        ["L1", "data", "32 KiB", "64", "2", "0-1", "sysfs"],
        ["L2", "unified", "1 MiB", "\N{EN DASH}", "1", "0-3", "core-table"],
    ]


def test_a_run_shows_each_measurement_with_its_unit(site: Any, paths: dict[str, str]) -> None:
    rows = site.json(paths["run"] + ".json")["measurements"]["rows"]
    tables = [table for table in site.page(paths["run"]).tables if table[0][0] == "#"]
    shown = {cells[0]: cells for table in tables for cells in table[1:]}
    assert len(rows) == len(shown) == 24
    for row in rows:
        cells = shown[str(row["seq"])]
        alike = [one["median"] for one in rows if one["probe"] == row["probe"]]
        scale = shown_unit(row["quantity"], alike)[1]
        assert number(row["best"], scale) in cells
        assert number(row["median"], scale) in cells
    assert "Best GB/s" in tables[0][0]
    assert "Best GFLOP/s" in tables[1][0]
    assert "Best ms" in tables[2][0]


def test_probes_of_many_points_have_units_of_their_own(empty_site: Any, seed: ModuleType) -> None:
    with empty_site.engine.begin() as connection:
        number_of_run = seed.a_run(connection, seed.board(connection))
        for seq, working_set in ((1, 16 << 10), (2, 64 << 20)):
            seed.measured(
                connection, number_of_run, seq, "latency", "latency", "seconds", 4e-9 * seq,
                parameters={"level": f"L{seq}", "working_set_bytes": str(working_set)},
                working_set_bytes=working_set,
            )  # fmt: skip
        seed.measured(connection, number_of_run, 3, "clock", "clock", "hertz", 1.5e9)
        seed.measured(connection, number_of_run, 4, "network", "net", "seconds", 0.02)
    tables = empty_site.page(f"/runs/{seed.RUN_ID}").tables
    assert [next(head for head in table[0] if head.startswith("Best")) for table in tables] == [
        "Best ns",
        "Best ms",
        "Best GHz",
    ]
    assert [row[2] for row in tables[0][1:]] == ["latency L1 16 KiB", "latency L2 64 MiB"]


def test_doubtful_measurements_are_there_greyed_with_the_reason(site: Any, paths: dict[str, str]) -> None:
    page = site.page(paths["run"])
    assert "under-voltage during the measurement" in page.text
    assert "failed: the measuring child was killed: out of memory" in page.text
    greyed = {attributes["id"] for tag, attributes in page.tags if attributes.get("class") == "doubtful"}
    assert greyed == {"m30", "m31"}


def test_a_network_stands_beside_its_roofline(site: Any, paths: dict[str, str]) -> None:
    document = site.json(paths["network"] + ".json")
    network, totals, rows = document["network"], document["totals"], document["layers"]["rows"]
    assert network["macc"] == totals["macc"] == sum(row["macc"] for row in rows) == MOBILENET_V1_MACC
    assert network["ratio"] == pytest.approx(network["measured_seconds"] / network["roofline_seconds"])
    assert network["roofline_seconds"] == pytest.approx(sum(row["roofline_seconds"] for row in rows))
    roof = document["roofline"]
    for row in rows:
        compute, memory = 2 * row["macc"] / roof["flops_per_s"], row["memory_bytes"] / roof["bytes_per_s"]
        assert row["roofline_seconds"] == pytest.approx(max(compute, memory))
    page = site.page(paths["network"])
    assert measured(network["measured_seconds"], "seconds") in page.text
    assert measured(network["roofline_seconds"], "seconds") in page.text
    (table,) = page.tables
    for row, cells in zip(rows, table[1:-1], strict=True):
        assert cells[1:4] == [row["name"], row["op_type"], row["layer_class"]]
        assert cells[9:11] == [number(row["roofline_seconds"], 1e-6), number(row["measured_seconds"], 1e-6)]


def test_the_plot_without_javascript_has_a_dot_a_layer(site: Any, paths: dict[str, str]) -> None:
    page = site.page(paths["network"])
    rows = site.json(paths["network"] + ".json")["layers"]["rows"]
    dots = [attributes for tag, attributes in page.tags if tag == "circle" and attributes["class"] != "ridge"]
    drawn = [row for row in rows if row["intensity"] and row["achieved_flops_per_s"]]
    assert len(dots) == len(drawn) > 50
    assert any(tag == "polyline" for tag, _ in page.tags)


def test_a_graph_is_counted_once(site: Any, paths: dict[str, str]) -> None:
    site.client.get(paths["network"])
    site.statements.clear()
    site.client.get(paths["network"])
    site.client.get(paths["run"])
    assert not [statement for statement in site.statements if "model.data" in statement]


def test_csv_is_the_whole_table_in_si(site: Any, paths: dict[str, str]) -> None:
    lines = list(csv.DictReader(io.StringIO(site.client.get(paths["network"] + ".csv").text)))
    rows = site.json(paths["network"] + ".json")["layers"]["rows"]
    assert [float(line["measured_seconds"]) for line in lines] == [row["measured_seconds"] for row in rows]
    networks = csv.DictReader(io.StringIO(site.client.get(paths["run"] + ".csv?table=networks").text))
    assert [line["name"] for line in networks] == ["mobilenet_v1", "mobilenet_v1"]
    assert site.client.get(paths["run"] + ".csv?table=nothing").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/devices/nobody",
        "/runs/never",
        "/runs/never/networks/1",
        "/nothing",
        "/devices/'%20OR%201=1--",
    ],
)
def test_what_is_not_there_is_said_in_one_line(site: Any, path: str) -> None:
    answer = site.client.get(path)
    assert answer.status_code == 404
    assert "See the devices that this collector knows" in answer.text
    as_json = site.client.get(path + ".json")
    assert as_json.status_code == 404
    assert list(as_json.json()) == ["error"]


def test_a_number_that_is_no_network_is_not_found(site: Any, paths: dict[str, str]) -> None:
    assert site.client.get(paths["run"] + "/networks/1").status_code == 404
    assert site.client.get(paths["run"] + "/networks/word").status_code == 400
    assert site.client.get(paths["run"] + "/networks/9223372036854775808").status_code == 400
    assert site.client.get("/runs/%00").status_code == 400


def test_an_empty_store_says_what_to_run(empty_site: Any, seed: ModuleType) -> None:
    assert "roof-agent --collector" in empty_site.page("/").text
    assert empty_site.json("/devices.json")["devices"]["rows"] == []
    with empty_site.engine.begin() as connection:
        number = seed.board(connection)
    assert "This device has no run yet" in empty_site.page(f"/devices/{seed.FINGERPRINT}").text
    with empty_site.engine.begin() as connection:
        seed.a_run(connection, number, ok=0)
    text = empty_site.page(f"/runs/{seed.RUN_ID}").text
    assert "This run measured no network" in text
    assert "Nothing has been measured yet" in text


def test_the_state_of_a_run(empty_site: Any, seed: ModuleType) -> None:
    now = time.time_ns()
    open_run = {"ended_at": None, "complete": None, "planned": 4, "current": "bandwidth triad"}
    with empty_site.engine.begin() as connection:
        number = seed.a_run(connection, seed.board(connection), **open_run, stream="s", heard_at=now)
    page = empty_site.client.get(f"/runs/{seed.RUN_ID}").text
    assert "Now: bandwidth triad" in page
    assert 'http-equiv="refresh"' in page
    for changes, state in (
        ({"heard_at": now - 3600 * seed.SECOND}, "interrupted"),
        ({"heard_at": now, "stream": None}, "interrupted"),
        ({"ended_at": now, "complete": False, "reason": "stopped by Ctrl-C"}, "partial"),
        ({"complete": True}, "complete"),
    ):
        with empty_site.engine.begin() as connection:
            connection.execute(update(run).where(run.c.id == number).values(**changes))
        document = empty_site.json(f"/runs/{seed.RUN_ID}.json")
        assert document["run"]["state"] == state
        assert empty_site.json("/devices.json")["devices"]["rows"][0]["state"] == state
        assert 'http-equiv="refresh"' not in empty_site.client.get(f"/runs/{seed.RUN_ID}").text


def test_numpy_figures_say_so(empty_site: Any, seed: ModuleType) -> None:
    with empty_site.engine.begin() as connection:
        number = seed.a_run(connection, seed.board(connection))
        seed.measured(connection, number, 1, "bandwidth", "copy", "bytes_per_s", 2e9, backend="numpy", isa="")
        seed.measured(connection, number, 2, "peak", "fma", "flops_per_s", 8e9, backend="numpy", isa="")
    assert empty_site.json("/devices.json")["devices"]["rows"][0]["backend"] == "numpy"
    for path in ("/", f"/devices/{seed.FINGERPRINT}", f"/runs/{seed.RUN_ID}"):
        assert '<span class="numpy">numpy</span>' in empty_site.client.get(path).text


def test_a_roofline_is_as_good_as_the_worse_of_its_ceilings(empty_site: Any, seed: ModuleType) -> None:
    with empty_site.engine.begin() as connection:
        run_number = seed.a_run(connection, seed.board(connection))
        seed.measured(connection, run_number, 1, "bandwidth", "copy", "bytes_per_s", 2e9)
        seed.measured(connection, run_number, 2, "peak", "fma", "flops_per_s", 8e9)
        noisy = {"grade": "noisy", "element_type": "float64"}
        seed.measured(connection, run_number, 3, "peak", "fma", "flops_per_s", 4e9, **noisy)
    rooflines = empty_site.json(f"/runs/{seed.RUN_ID}.json")["rooflines"]
    assert {row["element_type"]: row["grade"] for row in rooflines} == {
        "float32": "clean",
        "float64": "noisy",
    }
    tiles = [
        attributes["class"]
        for tag, attributes in empty_site.page(f"/devices/{seed.FINGERPRINT}").tags
        if "tile" in (attributes.get("class") or "").split()
    ]
    assert tiles == ["tile", "tile doubtful"]


def test_why_there_is_no_prediction_is_said(empty_site: Any, seed: ModuleType) -> None:
    with empty_site.engine.begin() as connection:
        number = seed.a_run(connection, seed.board(connection))
        seed.a_network(connection, number, 1, "lost", [("a", "Conv")], "0" * 64)
        connection.execute(
            insert(model).values(
                sha256="1" * 64,
                name="broken",
                origin="agent",
                size_bytes=3,
                data=b"\xff\xff\xff",
                received_at=1,
            )
        )
        seed.a_network(connection, number, 2, "broken", [("a", "Conv")], "1" * 64)
        digest, nodes = seed.a_model(connection, "squeezenet1_0")
        seed.a_network(connection, number, 3, "bare", nodes, digest)
    rows = empty_site.json(f"/runs/{seed.RUN_ID}.json")["networks"]["rows"]
    problems = {row["name"]: row["problem"] for row in rows}
    assert problems["lost"] == "the graph that ran has not arrived"
    assert "no ONNX model" in problems["broken"]
    assert "no ceilings of float32 with 1 thread" in problems["bare"]
    for row in rows:
        assert row["problem"] in empty_site.page(f"/runs/{seed.RUN_ID}/networks/{row['seq']}").text


def test_a_long_run_comes_in_pages(empty_site: Any, seed: ModuleType) -> None:
    with empty_site.engine.begin() as connection:
        number = seed.a_run(connection, seed.board(connection))
        for seq in range(1, 251):
            seed.measured(connection, number, seq, "bandwidth", "copy", "bytes_per_s", 1e9 + seq)
    address = f"/runs/{seed.RUN_ID}"
    first, last = empty_site.json(address + ".json"), empty_site.json(address + ".json?page=3")
    assert (first["measurements"]["total"], len(first["measurements"]["rows"])) == (250, 100)
    assert [row["seq"] for row in last["measurements"]["rows"]] == list(range(201, 251))
    page = empty_site.page(address + "?page=2&sort=-best")
    links = {a["rel"]: a["href"] for tag, a in page.tags if tag == "a" and "rel" in a}
    assert links == {"prev": f"{address}?sort=-best", "next": f"{address}?sort=-best&page=3"}
    assert len(empty_site.client.get(address + ".csv").text.splitlines()) == 251
