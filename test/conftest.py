"""Fixtures and settings shared by all tests."""

from __future__ import annotations

import fcntl
import functools
import inspect
import os
import signal
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest
from ros_installed import HAS_ROS
from tries import tries
from typer.testing import CliRunner

from mmedge_ros.ros.graph.middleware_files import left_behind, remove_unused

ROOT = Path(__file__).resolve().parent.parent

LONGEST = (
    'test_detectors_with_torch.py',
    'test_with_torch.py',
    'test_shipped_bundles.py',
    'test_packaging.py',
    'test_shutdown.py',
    'test_live_replay.py',
    'test_killed_nodes.py',
    'test_live_sensors.py',
)

# Their modules cannot be imported without ROS 2.
NEED_ROS = [
    'ros',
    'lab/commands/test_demo.py',
    'lab/rivals/mmedge/test_live_bench.py',
]
collect_ignore = [] if HAS_ROS else NEED_ROS

_held: list[int] = []


def domain_of_our_own() -> int:
    """A ROS domain that no other test run on this machine has; a lock is held until the end."""
    for step in range(100):
        number = 1 + (os.getpid() + step) % 100
        lock = Path(tempfile.gettempdir()) / f'mmedge_tests_in_domain_{number}.lock'
        try:
            held = os.open(lock, os.O_RDWR | os.O_CREAT)
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        _held.append(held)
        return number
    return 101


# A worker of pytest-xdist inherits the domain of the process that started it.
if 'PYTEST_XDIST_WORKER' in os.environ:
    os.environ.pop('ROS_DOMAIN_ID', None)

# Read when rclpy and the messages are imported, so before any test module. The graph stays on
# this machine and in a domain of this run; a value of the wrong type in a message is an error
# (unchecked, an int in a float field arrives as 5e-324); images fit the shared memory.
for name, value in {
    'AMENT_PREFIX_PATH': sys.prefix,
    'FASTDDS_DEFAULT_PROFILES_FILE': str(ROOT / 'config/fastdds.xml'),
    'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SYSTEM_DEFAULT',  # that of the profile: localhost
    'ROS_DOMAIN_ID': str(domain_of_our_own()),
    'ROS_PYTHON_CHECK_FIELDS': '1',
}.items():
    os.environ.setdefault(name, value)

# What a script starts with & is deaf to Ctrl-C, and so would be all that tests start to interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow machine is no failure, and a failure must be the same for everybody.
hypothesis.settings.register_profile(
    'mmedge', deadline=None, derandomize=True, max_examples=tries(50)
)
hypothesis.settings.load_profile('mmedge')

# Before click 8.2 standard error went into standard output, unless this was said.
if 'mix_stderr' in inspect.signature(CliRunner).parameters:
    CliRunner.__init__ = functools.partialmethod(CliRunner.__init__, mix_stderr=False)  # type: ignore[assignment]


@pytest.fixture(scope='session', autouse=True)
def _logs_in_the_test_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ['ROS_LOG_DIR'] = str(tmp_path_factory.mktemp('ros_logs'))


@pytest.fixture(scope='session')
def data_folder() -> Path:
    """The folder with recorded data; tests that need it are skipped where it is not given."""
    folder = os.environ.get('MMEDGE_DATA')
    if not folder:
        pytest.skip('MMEDGE_DATA is not set: this test needs recorded data')
    path = Path(folder)
    assert path.is_dir(), f'MMEDGE_DATA points to {path}, which is not a folder'
    return path


@pytest.fixture(scope='session')
def street_flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three simulated seconds of a street by day; simulated once for all workers of a run."""
    from mmedge_lab.simulation.flight import FlightDescription, kept_flight

    folder = tmp_path_factory.getbasetemp()
    if 'PYTEST_XDIST_WORKER' in os.environ:
        folder = folder.parent
    with (folder / 'street.lock').open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = FlightDescription('street_day_near', seed=5, seconds=3.0)
        return kept_flight(folder / 'street_flight', wanted, lambda _: None)


@pytest.fixture(scope='session')
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights that find the white box of the little recordings."""
    from tiny_detector import write_tiny_detector

    return write_tiny_detector(tmp_path_factory.mktemp('detector') / 'tiny.onnx')


@pytest.fixture(scope='session')
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Service times, with which equal recordings give equal decisions on a busy machine, too."""
    from mmedge_ros.core.device_profile import measured_profile, write_profile

    times = {'camera.encode': 8.0, 'radar.encode': 0.4, 'fusion': 1.0}
    times |= {'receipt.transport': 0.1, 'features.transport': 0.2}
    path = tmp_path_factory.mktemp('profile') / 'device.yaml'
    spread = {name: (0.8e-3 * ms, 1e-3 * ms, 1.5e-3 * ms) for name, ms in times.items()}
    write_profile(measured_profile('made up', spread), path)
    return path


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what reports draw: most of a short replay's time, and tested on its own."""
    from mmedge_ros.report.report_pictures import NO_PICTURES

    monkeypatch.setattr('mmedge_ros.report.figures.draw_figures', lambda *_: [])
    monkeypatch.setattr('mmedge_ros.commands.replay_run.run_pictures', lambda *_: NO_PICTURES)


def pytest_sessionfinish() -> None:
    """Remove what processes that tests killed left in shared memory, as the next graph would."""
    if 'PYTEST_XDIST_WORKER' not in os.environ:
        remove_unused(left_behind())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that nothing else waits for it at the end."""
    items.sort(key=lambda item: item.path.name not in LONGEST)
