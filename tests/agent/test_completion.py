"""The committed completion scripts are what the parser gives, and shells take them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_scripts_are_up_to_date():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/completions.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
def test_bash_completes_verbs_and_flags():
    script = ROOT / "agent/roof_agent/completions/roof-agent.bash"

    def complete(*words):
        line = " ".join(f"'{word}'" for word in words)
        code = (
            f"source '{script}'; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1};"
            '_shtab_roof_agent roof-agent; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        return subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert complete("roof-agent", "do") == ["doctor"]
    assert complete("roof-agent", "run", "--no-p") == ["--no-probe"]
    assert complete("roof-agent", "run", "--log-format", "j") == ["json"]
