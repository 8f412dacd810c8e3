"""What is shown while ./mmedge installs and builds."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent.parent / 'bootstrap/progress.py'
spec = importlib.util.spec_from_file_location('progress', PROGRAM)
assert spec is not None
assert spec.loader is not None
progress = importlib.util.module_from_spec(spec)
spec.loader.exec_module(progress)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def log(tmp_path: Path) -> Path:
    packages = tmp_path / 'lib/python3.11/site-packages'
    (packages / 'pip-1.dist-info').mkdir(parents=True)
    return tmp_path / 'install-libraries.log'


def test_of_pip_are_shown_megabytes_then_packages_then_what_is_last(log: Path) -> None:
    seen = progress.StepProgress(log)
    assert seen.words() == ''
    text = 'Collecting numpy==2 (from -r a)\nCollecting scipy (from -r a)\n'
    log.write_text(text)
    unpacked = log.parent / 'tmp/pip-unpack-a'
    unpacked.mkdir(parents=True)
    (unpacked / 'numpy.whl').write_bytes(bytes(3_000_000))
    assert seen.words() == '2 packages looked up, 3 MB fetched'
    text += 'Installing collected packages: numpy, scipy, six\n'
    log.write_text(text)
    assert seen.words() == '0 of 3 packages installed'
    (log.parent / 'lib/python3.11/site-packages/numpy-2.dist-info').mkdir()
    assert seen.words() == '1 of 3 packages installed'
    log.write_text(text + 'Successfully installed numpy scipy six\n')
    assert seen.words() == 'installed, almost done'


def test_of_a_build_the_newest_file_is_shown(log: Path) -> None:
    log.write_text('-- Configuring done\n[1/345] Building\n[17/345] Building\nwarning: [3/4]\n')
    assert progress.StepProgress(log).words() == '17 of 345 files built'


def test_what_a_log_holds_is_never_an_error(log: Path) -> None:
    log.write_bytes(b'\xff\x00Collecting \xfe')
    assert progress.StepProgress(log).words() == ''


def test_a_terminal_has_one_line_no_longer_than_it_is_wide(log: Path) -> None:
    log.write_text('[17/345] Building\n')
    stream = Terminal()
    progress.show(progress.StepProgress(log), stream, 3.0, 0.0)
    assert stream.getvalue() == '\r\x1b[K    17 of 345 files built, 3 s'
    stream = Terminal()
    progress.show(progress.StepProgress(log), stream, 3.0, 0.0, width=10)
    assert stream.getvalue() == '\r\x1b[K    17 of'


def test_elsewhere_there_is_a_line_now_and_then(log: Path) -> None:
    log.write_text('[17/345] Building\n')
    stream, last = io.StringIO(), 0.0
    for seconds in range(40):
        last = progress.show(progress.StepProgress(log), stream, float(seconds), last)
    assert stream.getvalue().splitlines() == [
        'mmedge: 17 of 345 files built, 15 s',
        'mmedge: 17 of 345 files built, 30 s',
    ]


def test_it_ends_with_the_process_that_started_it(log: Path) -> None:
    # The parent it is told of is not its own: that one is gone.
    subprocess.run([sys.executable, '-I', PROGRAM, log, '1'], check=True, timeout=60)
