import os
import signal
import subprocess
import sys
import time

import pytest

CHILD = """
import pathlib, signal, sys, time
from graphgps_pearl.processes import end_with_parent
def stop(number, frame):
    written = pathlib.Path(sys.argv[1] + ".part")
    written.write_text(f"stopped by {number}")
    written.rename(sys.argv[1])
    sys.exit(128 + number)
signal.signal(signal.SIGTERM, stop)
end_with_parent()
print("ready", flush=True)
time.sleep(60)
"""
PARENT = f"""
import subprocess, sys, time
from graphgps_pearl.processes import start_child
child = start_child([sys.executable, "-c", {CHILD!r}, sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_child_saves_and_ends_when_its_parent_ends(tmp_path, number):
    trace = tmp_path / "trace"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(trace)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.send_signal(number)
    parent.wait(30)
    deadline = time.monotonic() + 30
    while not trace.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert trace.read_text() == f"stopped by {signal.SIGTERM.value}"


def test_a_process_that_was_not_started_so_does_not_watch_its_input():
    script = "from graphgps_pearl.processes import end_with_parent; end_with_parent(); print('went on')"
    done = subprocess.run(
        [sys.executable, "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    assert done.stdout == "went on\n"
