"""The executor of the nodes behaves the same with the executors of newer releases of rclpy.

From Jazzy 7.1.9 and Kilted 9.1.5 on, rclpy keeps its tasks otherwise, resumes a coroutine when
what it awaits is done, and `spin()` no longer calls `spin_once()`. The wheels are older: a copy of
the installed rclpy is brought into that shape, and the tests of the executor run with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rclpy
from rclpy.executors import Executor, SingleThreadedExecutor

from mmedge_ros.ros import lean_executor
from mmedge_ros.ros.lean_executor import LeanExecutor, node_executor

TESTS = Path(__file__).with_name('test_lean_executor.py')

# What stands in the older file, and what stands there instead.
EXECUTORS = (
    (
        "        self._tasks: List[Tuple[Task[Any], 'Optional[Entity]', Optional[Node]]] = []\n",
        '        self._pending_tasks = {}\n'
        '        self._ready_tasks = []\n'
        '        self._is_in_spin = False\n',
    ),
    (
        '            self._tasks.append((task, None, None))\n'
        '            if self._guard:\n'
        '                self._guard.trigger()\n',
        '            self._pending_tasks[task] = (None, None)\n'
        '        self._call_task_in_next_spin(task)\n',
    ),
    (
        '    def create_future(self)',
        '    def _call_task_in_next_spin(self, task):\n'
        '        with self._tasks_lock:\n'
        '            self._ready_tasks.append(task)\n'
        '        if self._guard:\n'
        '            self._guard.trigger()\n'
        '\n'
        '    def _enter_spin(self):\n'
        '        if self._is_in_spin:\n'
        "            raise RuntimeError('Executor is already spinning')\n"
        '        self._is_in_spin = True\n'
        '\n'
        '    def create_future(self)',
    ),
    (
        '            self._tasks.append((task, entity, node))\n',
        '            self._pending_tasks[task] = (entity, node)\n',
    ),
    (
        '                tasks = list(self._tasks)\n',
        '                tasks = [(t, *self._pending_tasks[t]) for t in self._ready_tasks\n'
        '                         if t in self._pending_tasks]\n'
        '                self._ready_tasks.clear()\n',
    ),
    (
        '                with self._tasks_lock:\n'
        '                    # Get rid of any tasks that are done\n'
        '                    self._tasks = list(filter(lambda t_e_n: not t_e_n[0].done(), '
        'self._tasks))\n'
        '                    # Get rid of any tasks that are cancelled\n'
        '                    self._tasks = list(filter(lambda t_e_n: not t_e_n[0].cancelled(), '
        'self._tasks))\n',
        '            with self._tasks_lock:\n'
        '                for task in list(self._pending_tasks):\n'
        '                    if task.done() or task.cancelled():\n'
        '                        del self._pending_tasks[task]\n',
    ),
    (
        '        while self._context.ok() and not self._is_shutdown:\n'
        '            self.spin_once()\n',
        '        self._enter_spin()\n'
        '        try:\n'
        '            while self._context.ok() and not self._is_shutdown:\n'
        '                self._spin_once_impl()\n'
        '        finally:\n'
        '            self._is_in_spin = False\n',
    ),
    (
        '    def spin_once(self, timeout_sec: Optional[float] = None) -> None:\n'
        '        self._spin_once_impl(timeout_sec)\n',
        '    def spin_once(self, timeout_sec=None):\n'
        '        self._enter_spin()\n'
        '        try:\n'
        '            self._spin_once_impl(timeout_sec)\n'
        '        finally:\n'
        '            self._is_in_spin = False\n',
    ),
)
TASK = (
    (
        '        while self._pending():\n            yield\n',
        '        while self._pending():\n            yield self\n',
    ),
    (
        '                    handler.send(None)\n',
        '                    awaited = handler.send(None)\n'
        '                    executor = self._executor()\n'
        '                    if executor is not None and isinstance(awaited, Future):\n'
        '                        awaited.add_done_callback(\n'
        '                            lambda _: executor._call_task_in_next_spin(self))\n',
    ),
)


def rewrite(file: Path, replacements: tuple[tuple[str, str], ...]) -> None:
    text = file.read_text()
    for old, new in replacements:
        assert old in text, f'{file.name} is another than that of the wheels: {old}'
        text = text.replace(old, new)
    file.unlink()
    file.write_text(text)


@pytest.fixture
def newer_rclpy(tmp_path: Path) -> Path:
    """A folder to import an rclpy of the newer shape from."""
    if hasattr(SingleThreadedExecutor(), '_pending_tasks'):
        pytest.skip('the installed rclpy is of the newer shape, and was tested')
    copy = tmp_path / 'rclpy'
    shutil.copytree(Path(rclpy.__file__).parent, copy, copy_function=os.symlink)
    rewrite(copy / 'executors.py', EXECUTORS)
    rewrite(copy / 'task.py', TASK)
    return tmp_path


def test_all_tests_of_the_executor_pass_with_a_newer_rclpy(ros: None, newer_rclpy: Path) -> None:
    program = (
        'import sys, pytest, rclpy.executors as executors;'
        f'assert executors.__file__.startswith({str(newer_rclpy)!r});'
        f'sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", {str(TESTS)!r}]))'
    )
    run = subprocess.run(
        [sys.executable, '-c', program],
        env={**os.environ, 'PYTHONPATH': str(newer_rclpy)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120.0,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert 'passed' in run.stdout


@pytest.mark.parametrize('place', [Executor, lean_executor._rclpy])
def test_an_rclpy_with_another_inside_keeps_its_own_executor_and_the_log_says_so(
    ros: None, place: object, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(node_executor(), LeanExecutor)
    if place is Executor:
        monkeypatch.setattr(lean_executor, '_TASKS', ('_errands',))
        name = 'Executor._errands'
    else:
        monkeypatch.delattr(place, 'Timer')
        name = 'Timer.is_timer_ready'
    assert type(node_executor()) is SingleThreadedExecutor
    assert f'this rclpy has no {name}' in capfd.readouterr().err
