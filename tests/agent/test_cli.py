"""The command line as a process: what it prints where, and its exit codes."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from roof_agent.cli import parser, with_verb
from roof_agent.errors import EXIT_HELP, Exit
from roof_agent.probes import all_probes

# The shortest real run: two peaks on one CPU, by numpy so that it works without a compiler.
SHORT = ("--quick", "--probe", "peak", "--threads", "1", "--backend", "numpy", "--duration", "1.5s")


@pytest.fixture
def agent(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROOF_")}
    environment |= {"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}

    def start(*arguments, **more):
        return subprocess.Popen(
            [sys.executable, "-m", "roof_agent.cli", *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=tmp_path, env={**environment, **more},
        )  # fmt: skip

    def run(*arguments, **more):
        process = start(*arguments, **more)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    run.start = start
    return run


def test_version_and_help(agent):
    assert agent("--version")[:2] == (0, "roof-agent 0.1.0\n")
    code, out, _ = agent("--help")
    assert code == 0
    assert all(words in out for words in EXIT_HELP.values())


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ([], ["run"]),
        (["--quick"], ["run", "--quick"]),
        (["-q", "list"], ["run", "-q", "list"]),
        (["list"], ["list"]),
        (["--version"], ["--version"]),
        (["-h"], ["-h"]),
    ],
)
def test_run_is_the_default_verb(given, whole):
    assert with_verb(given) == whole


def test_list_and_describe_come_from_the_registry(agent):
    code, out, _ = agent("list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(all_probes())
    code, out, _ = agent("list", "--json")
    assert [found["name"] for found in json.loads(out)] == list(all_probes())
    for name, probe in all_probes().items():
        code, out, _ = agent("describe", name)
        assert code == 0
        assert probe.help in out
        assert len(out) > len(probe.help) + 100, f"{name} has no story"


def test_info_and_doctor(agent):
    code, out, _ = agent("info")
    assert code == 0
    assert out.startswith("model ")
    document = json.loads(agent("info", "--json")[1])
    assert len(document["device"]["fingerprint"]) == 64
    assert document["conditions"]["memory_available_bytes"] > 0
    code, out, _ = agent("doctor")
    assert code == 0
    assert "a run measures clock, bandwidth, peak" in out
    assert json.loads(agent("doctor", "--json")[1])["seconds"] > 0


def test_a_run_prints_a_table_and_keeps_lines(agent, tmp_path):
    code, out, err = agent(*SHORT, "--output", "run.jsonl", "--label", "room=4")
    assert code == 0, err
    assert [line.split()[0] for line in out.splitlines() if line.startswith("fma")] == ["fma", "fma"]
    assert "measured with numpy" in out
    assert "\x1b" not in out + err
    assert err.splitlines()[0].startswith("1/2 peak fma float32 1 thread: ")
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [(line["schema"], line["seq"]) for line in lines] == [(1, seq) for seq in range(4)]
    assert [next(iter(set(line) - {"schema", "run", "seq"})) for line in lines] == [
        "start",
        "measurement",
        "measurement",
        "end",
    ]
    assert len({line["run"] for line in lines}) == 1
    start, measurement, _, end = (
        next(value for value in line.values() if isinstance(value, dict)) for line in lines
    )
    assert start["planned_measurements"] == 2
    assert start["labels"] == {"room": "4"}
    assert measurement["backend"] == "numpy"
    assert len(measurement["repetitions"]) == measurement["statistics"]["n"] >= 3
    assert measurement["before"]["monotonic_ns"] < measurement["after"]["monotonic_ns"]
    assert end["complete"] is True


def test_json_is_one_document_on_standard_output(agent):
    code, out, err = agent(*SHORT, "--json", "-q")
    assert code == 0
    assert err == ""
    document = json.loads(out)
    assert [found["outcome"] for found in document["measurements"]] == ["ok", "ok"]


def test_a_dry_run_measures_nothing(agent):
    begin = time.monotonic()
    code, out, _ = agent("--dry-run", "--json")
    assert code == 0
    assert time.monotonic() - begin < 5
    document = json.loads(out)
    assert document["seconds"] > 10
    assert document["memory_bytes"] > 32 << 20
    assert any(line.startswith("bandwidth triad") for line in document["measurements"])
    assert "measurements, about" in agent("--dry-run", "--quick")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nonsense"], "unrecognized"),
        (["teleport"], "invalid choice"),
        (["--quick", "--rigorous"], "not allowed with"),
        (["--probe", "teleport"], "no probe 'teleport'"),
        (["describe", "teleport"], "no probe 'teleport'"),
        (["--threads", "1000000"], "more than"),
        (["--cpus", "4095"], "cpu 4095"),
        (["--model", "none.onnx"], "can't read none.onnx"),
        (["--output", "no/such/folder/x"], "can't write"),
        (["--duration", "1s"], "at the least"),
        (["--config", "none.toml"], "can't read none.toml"),
        (["--collector", "nowhere", "--quick"], "host:port"),
        (["send"], "--collector"),
    ],
)
def test_usage_errors_are_one_line_and_code_2(agent, arguments, words):
    code, out, err = agent(*arguments)
    assert (code, out) == (Exit.USAGE, "")
    assert words in err
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 1 or err.startswith("usage:")


def test_a_failed_measurement_is_code_1_and_the_others_are_there(agent, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        textwrap.dedent("""
        import sys
        if sys.argv[0] == "-m":
            from roof_agent.probes import all_probes
            import os
            peak = type(all_probes()["peak"])
            real = peak.measure
            def measure(self, task):
                if task.element_type == "float64":
                    os.abort()
                return real(self, task)
            peak.measure = measure
    """)
    )
    code, out, err = agent(*SHORT, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    assert code == Exit.PARTIAL, err
    assert "fma float64 failed: its process ended with SIGABRT" in out, err
    assert "fma  float32" in out
    assert "warning: 2/2" in err


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)]
)
def test_signals_end_a_run_with_its_last_record(agent, tmp_path, signum, code):
    process = agent.start("--rigorous", "--probe", "peak", "--backend", "numpy", "--output", "run.jsonl")
    path = tmp_path / "run.jsonl"
    end = time.monotonic() + 20
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signum)
    _, err = process.communicate(timeout=10)
    assert process.returncode == code
    assert "Traceback" not in err
    last = json.loads(path.read_text().splitlines()[-1])["end"]
    assert last["complete"] is False
    assert last["reason"] == f"stopped by {signum.name}"


def test_an_interval_begins_run_after_run(agent, tmp_path):
    process = agent.start(*SHORT, "--interval", "1s", "--output", "run.jsonl", "-q")
    path = tmp_path / "run.jsonl"
    end = time.monotonic() + 30
    while not path.exists() or path.read_text().count('"start"') < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    process.terminate()
    process.communicate(timeout=10)
    assert process.returncode == Exit.TERMINATED
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({line["run"] for line in lines}) == 2
    assert "end" in lines[-1]


def test_settings_from_the_environment(agent):
    code, out, _ = agent("--dry-run", ROOF_PROBE="peak", ROOF_PRESET="quick", ROOF_THREADS="1", ROOF_JSON="1")
    assert code == 0
    assert json.loads(out)["measurements"] == ["peak fma float32 1 thread", "peak fma float64 1 thread"]


def test_a_reader_that_leaves_is_no_error(agent):
    process = agent.start("describe", "peak")
    process.stdout.close()
    assert process.wait(timeout=20) == 0
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()


HEAVY = ("numpy", "onnx", "onnxruntime", "sqlalchemy", "fastapi", "scipy", "alembic", "jinja2", "matplotlib")
# As if they weren't installed.
BLOCKED = f"import sys; sys.modules.update(dict.fromkeys({HEAVY!r}))\n"


def python(code):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )


def test_the_parent_imports_nothing_heavy():
    done = python(BLOCKED + "import roof_agent.cli, roof_agent.verbs.run, roof_agent.verbs.doctor\n"
                  "import roof_agent.session, roof_agent.spool\n"
                  "from roof_agent.probes import all_probes; all_probes()\n"
                  "from roof_agent.cli import main\n"
                  "raise SystemExit(main(['--dry-run', '--quick']))")  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_grpc_and_protobuf_are_imported_only_with_a_collector():
    done = python("import sys; from roof_agent.cli import main; main(['--dry-run', '--quick'])\n"
                  "loaded = {'grpc', 'google.protobuf', 'numpy', 'psutil'} & set(sys.modules)\n"
                  "raise SystemExit(str(loaded) if loaded else 0)")  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_flag_of_run_is_in_the_help():
    run = next(action for action in parser()._actions if action.choices).choices["run"]
    text = run.format_help()
    for action in run._actions:
        assert action.help, action.option_strings
        assert all(flag in text for flag in action.option_strings)


def test_a_full_disk_costs_the_file_and_not_the_run(agent):
    code, out, err = agent(*SHORT, "--output", "/dev/full")
    assert code == Exit.ENVIRONMENT
    assert err.count("can't write /dev/full: No space left on device") == 1
    assert "Traceback" not in err
    assert "fma" in out
