"""The limiter on real processes, all of them started here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import typer
from typer.testing import CliRunner

from mmedge_ros.commands.limit import limit
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.cpu_limit.limiter import CpuLimiter
from mmedge_ros.monitoring.cpu_limit.process_tree import ProcessTree

ROOT = Path(__file__).resolve().parents[3]
COMMAND = """
import sys, typer
from mmedge_ros.commands.limit import limit
app = typer.Typer()
app.command()(limit)
app()
"""
# Says who it is, then counts as fast as it may.
COUNTING = """
import os, sys
print(os.getpid(), flush=True)
while True:
    for _ in range(20000):
        pass
    print('still', flush=True)
"""
# The same in a child of a child that has left the session and lost its parent.
ORPHAN = f"""
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        exec({COUNTING!r})
    os._exit(0)
while True:
    pass
"""


def limited(*arguments: str, code: str) -> subprocess.Popen[str]:
    """Run `mmedge limit` on a Python program; its output comes through."""
    return subprocess.Popen(
        [sys.executable, '-c', COMMAND, *arguments, '--', sys.executable, '-c', code],
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def counting(request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A limited program that counts: the limiter and the program's process id."""
    limiter = limited('5', code=getattr(request, 'param', COUNTING))
    assert limiter.stdout is not None
    program = psutil.Process(int(limiter.stdout.readline()))
    begun = [limiter.pid, program.pid, *(p.pid for p in program.parents() if p.pid > 1)]
    ours = [psutil.Process(limiter.pid), program, *psutil.Process(limiter.pid).children(True)]
    yield limiter, program.pid
    assert begun
    for process in ours:
        if process.is_running():
            process.kill()
    limiter.wait(20.0)
    for stream in (limiter.stdout, limiter.stderr):
        if stream is not None:
            stream.close()


def lines_arrive(limiter: subprocess.Popen[str], count: int) -> bool:
    """Whether the program goes on; it would block for ever if it stood still."""
    assert limiter.stdout is not None
    return all(limiter.stdout.readline() == 'still\n' for _ in range(count))


def test_a_busy_process_is_held_to_its_share() -> None:
    code = 'import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass'
    process = subprocess.Popen([sys.executable, '-c', code], start_new_session=True)
    before = os.times()
    with CpuLimiter(process, 20.0) as limiter:
        assert limiter.run() == 0
        used = limiter.used
    after = os.times()
    reported = after.children_user + after.children_system
    reported -= before.children_user + before.children_system
    cpus = psutil.cpu_count() or 1
    # On a machine busy with other things it may get less, but never more.
    assert 0.01 < used <= 0.23
    # What the guardian needs is not the program's.
    assert used * 1.5 * cpus == pytest.approx(reported, abs=0.15)


def test_who_needs_little_is_left_alone() -> None:
    process = subprocess.Popen(['sleep', '0.3'], start_new_session=True)
    with CpuLimiter(process, 10.0) as limiter:
        assert limiter.run() == 0
        assert limiter.used < 0.1


def test_children_are_found_and_counted(tmp_path: Path) -> None:
    code = 'import os\nos.fork()\nos.fork()\nos.write(1, b"x\\n")\nwhile True: pass'
    process = subprocess.Popen(
        [sys.executable, '-c', code], start_new_session=True, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.read(8) == b'x\n' * 4
        tree = ProcessTree(psutil.Process(process.pid))
        tree.refresh()
        assert len(tree.members) == 4
        assert tree.session == process.pid
        begun, seen = time.monotonic(), tree.consumed()
        while tree.consumed() < seen + 0.05:
            assert time.monotonic() < begun + 60.0
        tree.signal(signal.SIGSTOP)
        while {member.status() for member in tree.members} != {psutil.STATUS_STOPPED}:
            assert time.monotonic() < begun + 90.0
        tree.signal(signal.SIGCONT)
        assert psutil.STATUS_STOPPED not in {member.status() for member in tree.members}
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_the_time_of_children_that_came_and_went_is_counted() -> None:
    code = (
        'import os\n'
        'for _ in range(3):\n'
        '    if os.fork() == 0:\n'
        '        for _ in range(3_000_000): pass\n'
        '        os._exit(0)\n'
        '    os.wait()\n'
        'print("x", flush=True)\n'
        'input()\n'
    )
    pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE}
    with subprocess.Popen([sys.executable, '-c', code], **pipes) as process:  # type: ignore[call-overload]
        tree = ProcessTree(psutil.Process(process.pid))
        begun = tree.consumed()
        assert process.stdout.read(1) == b'x'
        tree.refresh()
        times = psutil.Process(process.pid).cpu_times()
        children = times.children_user + times.children_system
        assert children > 0.02
        assert tree.consumed() - begun >= children - 0.02
        process.communicate(b'\n')


def test_when_the_limiter_is_killed_everybody_runs_on(
    counting: tuple[subprocess.Popen[str], int],
) -> None:
    limiter, program = counting
    while psutil.Process(program).status() != psutil.STATUS_STOPPED:
        pass
    limiter.kill()
    # Unlimited, and nobody left to stop it.
    assert lines_arrive(limiter, 500)


@pytest.mark.parametrize('counting', [ORPHAN], indirect=True)
def test_an_orphan_that_left_the_session_is_limited_and_runs_on(
    counting: tuple[subprocess.Popen[str], int],
) -> None:
    limiter, program = counting
    while psutil.Process(program).status() != psutil.STATUS_STOPPED:
        pass
    limiter.kill()
    assert lines_arrive(limiter, 500)


def test_when_the_limiter_hangs_everybody_runs_on(
    counting: tuple[subprocess.Popen[str], int],
) -> None:
    limiter, program = counting
    while psutil.Process(program).status() != psutil.STATUS_STOPPED:
        pass
    limiter.send_signal(signal.SIGSTOP)
    assert lines_arrive(limiter, 500)


def test_a_guardian_that_was_killed_is_replaced() -> None:
    process = subprocess.Popen(['sleep', '60'], start_new_session=True)
    try:
        with CpuLimiter(process, 50.0) as limiter:
            limiter.step()
            first = limiter.guardian.process
            first.kill()
            deadline = time.monotonic() + 30.0
            while limiter.guardian.process == first:
                assert time.monotonic() < deadline
                limiter.step()
            assert limiter.guardian.process.is_running()
        assert not limiter.guardian.process.is_running()
        assert psutil.Process(process.pid).status() != psutil.STATUS_STOPPED
    finally:
        process.kill()
        process.wait()


def test_a_signal_ends_the_command_and_not_only_the_limiter(
    counting: tuple[subprocess.Popen[str], int],
) -> None:
    limiter, program = counting
    limiter.terminate()
    limiter.communicate(timeout=30.0)
    assert limiter.returncode == 128 + signal.SIGTERM
    assert not psutil.pid_exists(program)


@pytest.mark.parametrize(
    ('code', 'expected'), [('raise SystemExit(7)', 7), ('import os; os.kill(os.getpid(), 9)', 137)]
)
def test_the_exit_code_is_that_of_the_command(code: str, expected: int) -> None:
    limiter = limited('50', code=code)
    _, errors = limiter.communicate(timeout=60.0)
    assert limiter.returncode == expected
    assert '% of the machine used' in errors


def test_a_trace_changes_the_share_over_time(tmp_path: Path) -> None:
    trace = tmp_path / 'trace.csv'
    trace.write_text('0,100\n0.5,5\n')
    code = (
        'import json, time\n'
        'begun, used = time.monotonic(), []\n'
        'for end in (0.5, 1.5):\n'
        '    before, since = time.process_time(), time.monotonic()\n'
        '    while time.monotonic() < begun + end: pass\n'
        '    used.append((time.process_time() - before) / (time.monotonic() - since))\n'
        'print(json.dumps(used))\n'
    )
    limiter = limited('--trace', str(trace), code=code)
    output, _ = limiter.communicate(timeout=60.0)
    free, held = json.loads(output)
    cpus = psutil.cpu_count() or 1
    assert held < 0.05 * cpus + 0.06
    assert held < free


@pytest.mark.parametrize(
    ('arguments', 'code', 'words'),
    [
        (('0', '--', 'true'), 1, '0 %; a share of the machine is 1 to 100 %'),
        (('half', '--', 'true'), 2, "'half' is not a percentage"),
        (('50',), 2, 'say what to run'),
        (('50', '--', 'no such program'), 127, 'no such program: no such command'),
        (('50', '--', '/'), 126, '/: Permission denied'),
    ],
)
def test_what_cannot_be_limited_is_said(arguments: tuple[str, ...], code: int, words: str) -> None:
    app = typer.Typer()
    app.command()(limit)
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code
    assert words in ' '.join(result.stderr.replace('│', ' ').split())


def test_a_share_that_is_none_is_refused() -> None:
    process = subprocess.Popen(['sleep', '60'])
    try:
        with pytest.raises(MonitoringError, match='1 to 100 %'):
            CpuLimiter(process, 0.0)
    finally:
        process.kill()
        process.wait()
