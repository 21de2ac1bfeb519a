"""Settings: flag before variable before file before default, and one line for what is wrong."""

from pathlib import Path

import pytest

from roof_agent.config import OPTIONS, resolve, seconds
from roof_agent.errors import UsageError


@pytest.fixture(autouse=True)
def no_files_of_this_machine(monkeypatch):
    monkeypatch.setattr("roof_agent.config.CONFIG_FILES", ())


def toml(tmp_path, content):
    path = tmp_path / "agent.toml"
    path.write_text(content)
    return path


def test_defaults():
    found = resolve({}, {})
    assert (found.collector, found.preset, found.threads, found.json) == (None, "default", (), False)
    assert (found.label, found.interval, found.log_format, found.no_color) == ({}, None, "text", False)


def test_precedence(tmp_path):
    path = toml(tmp_path, 'preset = "rigorous"\n')
    assert resolve({}, {}, path).preset == "rigorous"
    assert resolve({}, {"ROOF_PRESET": "quick"}, path).preset == "quick"
    assert resolve({"preset": ["default"]}, {"ROOF_PRESET": "quick"}, path).preset == "default"
    assert resolve({}, {"ROOF_CONFIG": str(path)}).preset == "rigorous"


@pytest.mark.parametrize(
    ("name", "flag", "variable", "file", "value"),
    [
        ("collector", ["10.0.0.2:50051"], "10.0.0.2:50051", '"10.0.0.2:50051"', "10.0.0.2:50051"),
        ("probe", ["peak", "bandwidth"], "peak,bandwidth", '["peak", "bandwidth"]', ("peak", "bandwidth")),
        ("threads", ["1", "all"], "1,all", '[1, "all"]', (1, 0)),
        ("cpus", ["0,2-3"], "0,2-3", '"0,2-3"', (0, 2, 3)),
        ("interval", ["5m"], "5m", "300", 300.0),
        ("model", ["a.onnx"], "a.onnx", '["a.onnx"]', (Path("a.onnx"),)),
        ("label", ["room=4", "x=b=c"], "room=4,x=b=c", '{room = 4, x = "b=c"}', {"room": "4", "x": "b=c"}),
        ("strict", ["true"], "1", "true", True),
        ("json", ["true"], "yes", "true", True),
        ("output", ["x.jsonl"], "x.jsonl", '"x.jsonl"', Path("x.jsonl")),
    ],
)  # fmt: skip
def test_each_source_says_the_same(tmp_path, name, flag, variable, file, value):
    path = toml(tmp_path, f"{name} = {file}\n")
    assert getattr(resolve({name: flag}, {}), name) == value
    assert getattr(resolve({}, {f"ROOF_{name.upper()}": variable}), name) == value
    assert getattr(resolve({}, {}, path), name) == value


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"threads": ["0"]}, "--threads"),
        ({"threads": ["many"]}, "or all"),
        ({"cpus": ["x"]}, "0,2-3"),
        ({"interval": ["soon"]}, "5m"),
        ({"duration": ["-3"]}, "--duration"),
        ({"label": ["room"]}, "KEY=VALUE"),
        ({"backend": ["fortran"]}, "native, numpy"),
    ],
)
def test_wrong_values_are_named(flags, words):
    with pytest.raises(UsageError, match=words):
        resolve(flags, {})


def test_wrong_variables_and_files_are_named(tmp_path):
    with pytest.raises(UsageError, match="ROOF_STRICT"):
        resolve({}, {"ROOF_STRICT": "perhaps"})
    with pytest.raises(UsageError, match=r"agent\.toml: threads"):
        resolve({}, {}, toml(tmp_path, "threads = [0]\n"))
    with pytest.raises(UsageError, match="unknown key colour"):
        resolve({}, {}, toml(tmp_path, "colour = true\n"))
    with pytest.raises(UsageError, match="isn't TOML"):
        resolve({}, {}, toml(tmp_path, "preset = \n"))
    with pytest.raises(UsageError, match="can't read"):
        resolve({}, {}, tmp_path / "none.toml")


def test_no_color_is_everybodys_variable():
    assert resolve({}, {"NO_COLOR": "1"}).no_color
    assert not resolve({}, {"NO_COLOR": ""}).no_color


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1d", 86400)]
)
def test_seconds(text, value):
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "0", "-1", "inf", "nan", "m", "5 m x"])
def test_not_seconds(text):
    with pytest.raises(ValueError, match="a time"):
        seconds(text)


def test_options_are_whole():
    for option in OPTIONS:
        assert option.help
        assert option.is_switch or option.metavar, option.name
