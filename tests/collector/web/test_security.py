"""What protects the pages: headers on every answer, whom they answer, and that they only read."""

from __future__ import annotations

import http.client
import re
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest

from roof_collector.web.exports import csv_lines


@pytest.mark.parametrize(
    "path", ["/", "/devices.json", "/nothing", "/static/style.css", "/api/v1/openapi.json"]
)
def test_every_answer_carries_the_headers(site: Any, path: str) -> None:
    headers = site.client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert not [name for name in headers if name.startswith("access-control-")]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", ""])
def test_foreign_host_names_are_refused(site: Any, host: str) -> None:
    answer = site.client.get("/", headers={"Host": host})
    assert answer.status_code in {400, 421}
    assert "pi4" not in answer.text
    assert answer.headers.get("x-content-type-options", "nosniff") == "nosniff"


def test_a_named_host_is_answered(tmp_path: Path, seed: ModuleType) -> None:
    with seed.served(tmp_path, hosts=["Lab.example"]) as running:
        for host, status in (("lab.example:1", 200), ("localhost", 200), ("[::1]:80", 200), ("other", 421)):
            assert running.client.get("/", headers={"Host": host}).status_code == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_written(site: Any, method: str) -> None:
    answer = site.client.request(method, "/devices")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/", "/devices", "/devices.json", "/devices.csv", "/static/style.css"])
def test_heads_are_answered(site: Any, path: str) -> None:
    answer = site.client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


def test_static_files_stay_in_their_folder(site: Any) -> None:
    address = urlsplit(site.url)
    for path in (
        "/static/../templates/base.html",
        "/static/%2e%2e/templates/base.html",
        "/static/..%2f__init__.py",
    ):
        connection = http.client.HTTPConnection(address.hostname or "", address.port)
        connection.request("GET", path)
        assert connection.getresponse().status == 404
        connection.close()


def test_no_page_has_inline_code(site: Any, seed: ModuleType) -> None:
    for path in ("/", f"/devices/{seed.FINGERPRINT}", f"/runs/{seed.RUN_ID}/networks/{seed.NETWORK_SEQ}"):
        text = site.client.get(path).text
        assert not re.search(r"<script(?![^>]* src=)", text)
        assert not re.search(r"<[^>]+\s(style|on\w+)=", text)
        assert "http://" not in text
        assert "https://" not in text


def test_a_first_load_is_light(site: Any, seed: ModuleType) -> None:
    page = seed.Page.of(site.client.get(f"/runs/{seed.RUN_ID}/networks/{seed.NETWORK_SEQ}").text)
    paths = {a.get("src") or a.get("href") for tag, a in page.tags if tag in {"script", "link"}}
    paths |= {f"/runs/{seed.RUN_ID}/networks/{seed.NETWORK_SEQ}", "/static/js/format.js"}
    total = 0
    for path in paths:
        with site.client.stream("GET", path) as answer:
            total += sum(len(chunk) for chunk in answer.iter_raw())
    assert 200_000 < total <= 500_000


def test_texts_that_spreadsheets_run_are_quoted() -> None:
    rows = [{"a": text, "b": -1.5} for text in ("=1", "+1", "-1", "@x", "\t=1", "\r=1", "plain", "")]
    lines = "".join(csv_lines(("a", "b"), rows))
    assert "'=1,-1.5" in lines
    assert "'+1,-1.5" in lines
    assert "'-1,-1.5" in lines
    assert "'@x,-1.5" in lines
    assert "\n=1" not in lines
    assert "plain,-1.5" in lines
