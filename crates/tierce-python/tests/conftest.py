"""What the tests share."""

import os
import pathlib
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Python leaves SIGINT ignored if who started it did, as shells do for what runs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def root(monkeypatch):
    """The project's folder, which is the current one."""
    monkeypatch.chdir(ROOT)
    return ROOT


@pytest.fixture
def command(root):
    """The command ``tierce`` of the same sources: its output."""
    program = pathlib.Path(os.environ.get("TIERCE", "target/debug/tierce"))
    if not program.exists():
        pytest.skip(f"{program} is not built")

    def run(*arguments, status=0):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout

    return run
