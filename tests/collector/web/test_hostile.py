"""Names that boards and networks may bear: shown as text, on every page, whatever is in them."""

from __future__ import annotations

import csv
import io
from types import ModuleType
from typing import Any

import pytest

RUN_ID = "0123abcd-ffff"
HOSTILE = (
    "<script>document.title='owned'</script>",
    "\"'><img src=x onerror=alert(1)>",
    "{{ 7*7 }}{% raw %}${7*7}",
    "abc\N{RIGHT-TO-LEFT OVERRIDE}txt.exe",
    "</textarea></style><svg onload=alert(1)>&amp;&lt;",
    "a" * 10_000,
    '=HYPERLINK("http://example.com")',
)


@pytest.fixture(scope="module", params=HOSTILE, ids=range(len(HOSTILE)))
def hostile(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, seed: ModuleType
) -> Any:
    """A site where every text that an agent can choose is the same hostile one."""
    name = request.param
    with seed.served(tmp_path_factory.mktemp("hostile")) as running:
        with running.engine.begin() as connection:
            texts = (
                "hostname",
                "model",
                "soc",
                "architecture",
                "os",
                "kernel",
                "virtualization",
                "container",
            )
            number = seed.board(
                connection,
                **dict.fromkeys(texts, name),
                agent_version=name,
                labels={name: name},
                isa_features=[name],
                clusters=[{"core": name, "cpus": [0]}],
                caches=[{"level": 1, "kind": name, "size_bytes": 1, "provenance": name, "shared_cpus": []}],
            )
            run = seed.a_run(
                connection, number, RUN_ID, agent_version=name, preset=name, reason=name, labels={name: name}
            )
            own = {
                "element_type": name, "backend_version": name, "compiler": name, "reason": name,
                "grade": "noisy", "grade_reasons": [name], "parameters": {"store": name, name: name},
                "conditions_after": {"governor": name, "temperature_celsius": {name: 40.0}},
            }  # fmt: skip
            seed.measured(
                connection, run, 1, "bandwidth", name, "bytes_per_s", 1e9, backend=name, isa=name, **own
            )
            for seq, element_type in ((2, "float32"), (3, name)):
                seed.measured(
                    connection, run, seq, "peak", name, "flops_per_s", 1e9,
                    **(own | {"element_type": element_type}),
                )  # fmt: skip
            del own["backend_version"]
            digest, nodes = seed.a_model(connection, "squeezenet1_0", [name])
            seed.a_network(connection, run, 4, name, nodes, digest, **own)
        yield name, running


def texts_of(value: Any) -> set[str]:
    """Return every text in a JSON document."""
    if isinstance(value, dict):
        return set().union(*map(texts_of, value.values()))
    if isinstance(value, list):
        return set().union(*map(texts_of, value))
    return {value} if isinstance(value, str) else set()


@pytest.mark.parametrize(
    "path", ["/devices", "/devices/{fingerprint}", "/runs/{run}", "/runs/{run}/networks/4"]
)
def test_a_name_is_text_everywhere(hostile: Any, seed: ModuleType, path: str) -> None:
    name, site = hostile
    address = path.format(fingerprint=seed.FINGERPRINT, run=RUN_ID)
    answer = site.client.get(address)
    assert answer.status_code == 200
    page = seed.Page.of(answer.text)
    assert name in page.text
    clean = {attribute for _, attributes in page.tags for attribute in attributes}
    assert not {attribute for attribute in clean if attribute.startswith("on") or attribute == "style"}
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert all((attributes["src"] or "").startswith("/static/") for attributes in scripts)
    assert not [tag for tag, _ in page.tags if tag in {"img", "style", "iframe", "object"}]
    assert name in texts_of(site.json(address + ".json"))


@pytest.mark.parametrize(
    "path", ["/devices", "/devices/{fingerprint}", "/runs/{run}", "/runs/{run}/networks/4"]
)
def test_a_spreadsheet_sees_no_formula(hostile: Any, seed: ModuleType, path: str) -> None:
    _, site = hostile
    address = path.format(fingerprint=seed.FINGERPRINT, run=RUN_ID)
    for cells in csv.reader(io.StringIO(site.client.get(address + ".csv").text)):
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t"))]


def test_a_name_comes_back_from_the_filter(hostile: Any) -> None:
    name, site = hostile
    answer = site.client.get(f"/runs/{RUN_ID}", params={"filter": name[:900]})
    assert answer.status_code == 200
    assert "<script>document" not in answer.text
