"""What comes from elsewhere is what its manifest says, and nothing else is there."""

from __future__ import annotations

import hashlib
import json
import re

from roof_dashboards import STATIC, TEMPLATES, VENDOR

MANIFEST = json.loads((VENDOR / "manifest.json").read_text())


def test_every_vendored_file_is_the_one_recorded() -> None:
    recorded = {name: digest for package in MANIFEST.values() for name, digest in package["files"].items()}
    there = {str(path.relative_to(VENDOR)): path for path in VENDOR.rglob("*") if path.is_file()}
    del there["manifest.json"]
    assert recorded == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in there.items()}


def test_every_package_says_its_version_licence_and_origin() -> None:
    for name, package in MANIFEST.items():
        assert package["version"] in package["origin"]
        assert package["license"]
        assert any(file.startswith(f"{name}/LICENSE") for file in package["files"])


def test_the_version_is_the_one_inside() -> None:
    text = (VENDOR / "echarts" / "echarts.common.min.js").read_text()
    assert f'version="{MANIFEST["echarts"]["version"]}"' in text


def test_nothing_is_inline_and_nothing_is_from_elsewhere() -> None:
    own = [*TEMPLATES.rglob("*.html"), STATIC / "style.css", *(STATIC / "js").rglob("*.js")]
    for path in own:
        text = path.read_text()
        assert not re.search(r"<script(?![^>]* src=)|\sstyle=|\son[a-z]+=\"", text), path
        assert not re.search(r"(src|href|url|import|from)[\s(=]*[\"']?https?:", text), path
        assert "innerHTML" not in text, path
        assert "| safe" not in text, path
