"""The bootstrap in ./mmedge, run with stand-ins for Python, pip, CMake and the compiler."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REAL_TOOLS = (
    'bash cat cut dirname env find flock grep mkdir nice nproc readlink rm sed sha256sum sort tail'
    ' uname'
)

# One stand-in plays the system's Python, the one in .venv and (as `python -m pip`) pip. It notes
# what it was asked to do in $NOTES; the tool named in $STOP_IN (pip: as it installs ROS) waits for
# the fifo $GATE, and pip fails where $PIP_SAYS is set.
PYTHON = r"""#!/bin/bash
PATH=/usr/bin:/bin
here=$(dirname "$0")
tool() {
  printf '#!/bin/bash\nPATH=/usr/bin:/bin\n%s\n' "$2" >"$here/$1"
  chmod +x "$here/$1"
}
case "$1 $2" in
  '-c '*)
    echo "${PYTHON_HAS:-3.11}"
    ;;
  '-m venv')
    echo venv >>"$NOTES"
    mkdir -p "$3/bin" "$3/lib/python3.11/site-packages" && cp "$0" "$3/bin/python"
    ;;
  '-m pip')
    echo "pip${*/#*\// }" | tr -s ' \n' ' ' >>"$NOTES" && echo >>"$NOTES"
    if [[ ${STOP_IN-} == pip && $* == */ros.txt ]]; then
      echo started >"$GATE" && read -r _ <"$GATE"
      [[ -z ${ROS_EXIT-} ]] || exit "$ROS_EXIT"
    fi
    if [[ -n ${PIP_SAYS-} ]]; then echo "$PIP_SAYS" && exit 1; fi
    tool cmake 'echo "cmake $1" >>"$NOTES"
      [[ $1 != --install ]] || touch "list of links"
      installed=$(dirname "$0")/..
      mkdir -p "$installed"/{build,share/mmedge_ros,lib/mmedge_ros}
      mkdir -p "$installed"/lib/python3.11/site-packages/mmedge_ros
      if [[ ${STOP_IN-} == cmake ]]; then echo started >"$GATE" && read -r _ <"$GATE"; fi
      exit "${CMAKE_EXIT:-0}"'
    for name in ruff lint-imports mypy shellcheck; do
      tool "$name" 'echo "$(basename "$0") $*" >>"$NOTES"
        [[ ${FAILING-} != "$(basename "$0")" ]]'
    done
    ;;
  '-m pytest')
    shift 2
    printf 'pytest %s, nice %s%s\n' "$*" "$(nice)" "$(trap -p INT)" >>"$NOTES"
    echo "data: ${MMEDGE_DATA-none}"
    if [[ $1 == -o ]]; then
      cache=${2#cache_dir=}/v/cache failed=${LIVE_TESTS-}
      [[ $3 != --last-failed ]] || failed=${FAILED_TWICE-}
      mkdir -p "$cache"
      { echo '{' && printf '  "%s": true,\n' $failed | sed '$s/,$//' && echo '}'; } \
        >"$cache/lastfailed"
      [[ -z $failed ]] || { echo '1 failed' && exit "${PYTEST_EXIT:-1}"; }
    fi
    if [[ $* == *test/regression* && $* != *--ignore* ]]; then
      if [[ ${STOP_IN-} == pytest ]]; then echo $$ >"$GATE" && exec sleep 1000; fi
      echo '3 passed' && exit "${COMPUTING_EXIT:-0}"
    fi
    echo '1 passed'
    ;;
  '-P -m')
    if [[ $* == *--flight-only ]]; then
      printf '%s\n' "flight: ${*:4}" "PYTHONPATH=$PYTHONPATH"
      if [[ -n ${FLIGHT_GATE-} ]]; then echo $$ >"$FLIGHT_GATE" && exec sleep 1000; fi
      exit "${FLIGHT_EXIT:-0}"
    fi
    shift 2
    printf '%s\n' "$@" "cwd=$PWD"
    [[ -z ${SHOW_BLOCKED-} ]] || grep SigBlk /proc/$$/status
    env | grep -E '^(LD_LIBRARY_PATH|PYTHONPATH|_ROS|ROS_DISTRO|RMW|AMENT|FAST)' | sort
    ;;
esac
"""


class Checkout:
    """A small copy of the project whose script only finds the tools in ``tools``."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / 'a check out'
        self.tools = folder / 'tools'
        self.notes_file = folder / 'notes'
        self.notes_file.touch()
        self.tools.mkdir()
        for name in REAL_TOOLS.split():
            path = shutil.which(name)
            assert path, f'these tests need {name}'
            (self.tools / name).symlink_to(path)
        self.add_tool('python3', PYTHON)
        self.add_tool('g++', '#!/bin/sh\n')
        self._copy()

    def _copy(self) -> None:
        for name in ('bootstrap', 'requirements', 'cmake', 'msg', 'srv', 'action'):
            shutil.copytree(ROOT / name, self.root / name)
        for name in ('mmedge', 'CMakeLists.txt', 'package.xml'):
            shutil.copy(ROOT / name, self.root / name)
        (self.root / 'mmedge_lab').mkdir()
        for name in ('mmedge_lab/pyproject.toml', 'mmedge_lab/setup.py'):
            shutil.copy(ROOT / name, self.root / name)
        for name in ('mmedge_ros/commands/main.py', 'config/fastdds.xml'):
            (self.root / name).parent.mkdir(parents=True)
            (self.root / name).touch()

    def add_tool(self, name: str, script: str) -> None:
        path = self.tools / name
        path.write_text(script)
        path.chmod(0o755)

    def environment(self, **variables: str) -> dict[str, str]:
        # Bash needs no locale files, and a home folder could hold pip settings.
        fixed = {'PATH': str(self.tools), 'NOTES': str(self.notes_file), 'LC_ALL': 'C'}
        return {**fixed, **variables}

    def run(
        self,
        *arguments: str,
        cwd: Path | None = None,
        script: Path | None = None,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [script or self.root / 'mmedge', *arguments],
            cwd=cwd or self.root,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.root / 'mmedge', *arguments],
            cwd=self.root,
            env=self.environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def notes(self) -> list[str]:
        """Return what the stand-ins did since the last call."""
        lines = [line.strip() for line in self.notes_file.read_text().splitlines()]
        self.notes_file.write_text('')
        return [' '.join(line.split()[:2]) for line in lines if line]


# Libraries, the laboratory and ROS 2 are installed apart.
ONE_PIP, TWO_PIPS, PIP = ['pip'], ['pip'] * 2, ['pip'] * 3
BUILD = ['cmake -S', 'cmake --build', 'cmake --install']


def kinds(notes: list[str]) -> list[str]:
    """Drop the arguments of pip."""
    return ['pip' if note.startswith('pip') else note for note in notes]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture(scope='module')
def set_up(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    found = Checkout(tmp_path_factory.mktemp('ready'))
    assert found.run('replay').returncode == 0
    return found


@pytest.fixture
def ready(set_up: Checkout) -> Checkout:
    """One in which everything is installed; tests share it, and leave it so."""
    assert set_up.run('replay').returncode == 0
    set_up.notes()
    return set_up


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / 'gate'
    os.mkfifo(path)
    return path


def test_help_is_a_page_of_the_script_before_anything_is_installed(checkout: Checkout) -> None:
    done = checkout.run('--help')
    assert (done.returncode, done.stderr) == (0, '')
    assert done.stdout.startswith('Usage: ./mmedge COMMAND')
    assert checkout.notes() == []


def test_a_fresh_clone_is_set_up_and_only_the_result_is_on_standard_output(
    checkout: Checkout,
) -> None:
    done = checkout.run('replay', 'a bag')
    assert done.returncode == 0
    assert done.stdout.splitlines()[:3] == ['mmedge_ros.commands.start', 'replay', 'a bag']
    assert 'mmedge: installing ROS 2' in done.stderr
    assert kinds(checkout.notes()) == ['venv', *PIP, *BUILD]
    assert not (checkout.root / 'list of links').exists()


def test_a_second_run_does_nothing_and_says_nothing_from_wherever_it_is_started(
    ready: Checkout, tmp_path: Path
) -> None:
    done = ready.run('--help')
    assert (done.returncode, done.stderr) == (0, '')
    link = tmp_path / 'link to it'
    link.symlink_to(ready.root / 'mmedge')
    done = ready.run('replay', './flight', cwd=tmp_path, script=link)
    assert done.stdout.splitlines()[1:4] == ['replay', './flight', f'cwd={tmp_path}']
    assert ready.notes() == []


def test_changed_pins_are_installed_into_the_environment_that_is_there(ready: Checkout) -> None:
    for names in (('constraints.txt',), ('locked/flight.txt', 'locked/ros.txt')):
        for name in names:
            with (ready.root / 'requirements' / name).open('a') as pins:
                pins.write('something==1\n')
        assert ready.run().returncode == 0
        assert kinds(ready.notes()) == [*PIP, *BUILD]


def test_what_is_built_is_built_again_where_it_changed_and_an_edited_module_is_live_already(
    ready: Checkout,
) -> None:
    for name in (
        *('msg/Track.msg', 'srv/QueryMemory.srv', 'action/Ask.action'),
        *('CMakeLists.txt', 'cmake/executable.in', 'mmedge_ros/new.py'),
    ):
        with (ready.root / name).open('a') as file:
            file.write('# changed\n')
        assert ready.run().returncode == 0
        assert ready.notes() == BUILD
    (ready.root / 'mmedge_ros/new.py').write_text('a = 2\n')
    (ready.root / 'mmedge_ros/__pycache__').mkdir()
    (ready.root / 'mmedge_ros/__pycache__/new.pyc').touch()
    assert ready.run().returncode == 0
    assert ready.notes() == []
    stale = ready.root / '.venv/share/mmedge_ros/gone.yaml'
    stale.symlink_to(ready.root / 'config/gone.yaml')
    (ready.root / 'config/new.yaml').touch()
    assert ready.run().returncode == 0
    assert not stale.is_symlink()


@pytest.mark.parametrize(
    ('tool', 'repair'), [('pip', ['venv', *PIP, *BUILD]), ('cmake', BUILD)], ids=['pip', 'cmake']
)
def test_ctrl_c_exits_130_and_the_next_run_repairs_what_was_left(
    checkout: Checkout, gate: Path, tool: str, repair: list[str]
) -> None:
    process = checkout.start('replay', STOP_IN=tool, GATE=str(gate))
    with gate.open() as file:
        assert file.readline() == 'started\n'
    os.killpg(process.pid, signal.SIGINT)
    output, messages = process.communicate(timeout=30)
    assert (process.returncode, output) == (130, '')
    assert 'interrupted' in messages.splitlines()[-1]
    checkout.notes()

    half_made = checkout.root / '.venv/build/half made'
    half_made.parent.mkdir(exist_ok=True)
    half_made.touch()
    assert checkout.run('replay').returncode == 0
    assert kinds(checkout.notes()) == repair
    assert not half_made.exists()


def test_of_two_started_at_once_one_sets_up_and_the_other_waits(
    checkout: Checkout, gate: Path
) -> None:
    first = checkout.start('first', STOP_IN='pip', GATE=str(gate))
    with gate.open() as file:
        assert file.readline() == 'started\n'
    second = checkout.start('second')
    assert second.stderr is not None
    assert 'waiting for it' in second.stderr.readline()
    gate.write_text('go on\n')
    assert 'first' in first.communicate(timeout=30)[0]
    assert 'second' in second.communicate(timeout=30)[0]
    assert (first.returncode, second.returncode) == (0, 0)
    assert kinds(checkout.notes()) == ['venv', *PIP, *BUILD]


def test_an_interrupt_waits_until_python_has_started_and_can_answer_it(ready: Checkout) -> None:
    done = ready.run('up', SHOW_BLOCKED='yes')
    blocked = int(done.stdout.partition('SigBlk:')[2].split()[0], 16)
    assert blocked >> (signal.SIGINT - 1) & 1
    without = '#!/bin/bash\n[[ $1 != --block-signal=INT ]] && exec /usr/bin/env "$@"\n'
    (ready.tools / 'env').unlink()
    ready.add_tool('env', without)
    assert ready.run('up').stdout.splitlines()[0] == 'mmedge_ros.commands.start'


@pytest.mark.parametrize('code', ['0', '1'], ids=['well', 'badly'])
def test_the_demos_flight_is_simulated_during_the_setup_however_that_ends(
    checkout: Checkout, code: str
) -> None:
    done = checkout.run('demo', '--seconds', '5', FLIGHT_EXIT=code)
    assert done.returncode == 0
    assert done.stdout.splitlines()[:4] == ['mmedge_ros.commands.start', 'demo', '--seconds', '5']
    log = checkout.root / '.venv/demo-flight.log'
    assert log.read_text().splitlines() == [
        'flight: demo --seconds 5 --flight-only',
        f'PYTHONPATH={checkout.root}',
    ]
    log.unlink()
    assert checkout.run('demo').stderr == ''
    assert not log.exists()


def test_where_no_flight_is_needed_none_is_simulated(ready: Checkout) -> None:
    for arguments in (['up'], ['demo', '--bag', 'x'], ['demo', '--bag=x']):
        (ready.root / '.venv/.stamp-build').unlink()
        assert ready.run(*arguments).returncode == 0
    assert not (ready.root / '.venv/demo-flight.log').exists()


@pytest.mark.parametrize(('tool', 'interrupted'), [('pip', True), ('cmake', False)])
def test_the_flight_is_given_up_with_the_setup(
    checkout: Checkout, gate: Path, interrupted: bool, tool: str, tmp_path: Path
) -> None:
    flight = tmp_path / 'flight gate'
    os.mkfifo(flight)
    process = checkout.start(
        'demo', STOP_IN=tool, GATE=str(gate), FLIGHT_GATE=str(flight), ROS_EXIT='1', CMAKE_EXIT='1'
    )
    with gate.open() as file:
        assert file.readline() == 'started\n'
    pid = int(flight.read_text())
    if interrupted:
        os.killpg(process.pid, signal.SIGINT)
    else:
        gate.write_text('go on\n')
    output, messages = process.communicate(timeout=30)
    assert (process.returncode, output) == (130 if interrupted else 1, '')
    log = {'pip': 'install-ros.log', 'cmake': 'build.log'}[tool]
    assert ('interrupted' if interrupted else log) in messages.splitlines()[-1]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_moved_checkout_gets_a_new_environment(checkout: Checkout, tmp_path: Path) -> None:
    assert checkout.run().returncode == 0
    checkout.notes()
    checkout.root = checkout.root.rename(tmp_path / 'elsewhere')
    assert checkout.run().returncode == 0
    assert kinds(checkout.notes()) == ['venv', *PIP, *BUILD]


def test_a_failed_installation_shows_the_log_and_names_the_remedy(checkout: Checkout) -> None:
    for pip_says, remedy in (
        ('NewConnectionError: [Errno -2] Name or service not known', 'could not be reached'),
        ('ERROR: No matching distribution found for numpy==9', 'PIP_INDEX_URL'),
        ('OSError: [Errno 28] No space left on device', 'free about'),
        (
            'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.',
            'MMEDGE_WITHOUT_HASHES=1 ./mmedge install once',
        ),
        ('something else', 'install-libraries.log'),
    ):
        done = checkout.run('replay', PIP_SAYS=pip_says)
        assert (done.returncode, done.stdout) == (1, '')
        assert pip_says in done.stderr
        assert remedy in done.stderr.splitlines()[-1]


def pip_calls(checkout: Checkout) -> list[str]:
    lines = checkout.notes_file.read_text().splitlines()
    return [' '.join(line.split()[2:]) for line in lines if line.startswith('pip')]


def test_everything_is_installed_by_hashes_and_by_versions_alone_only_where_that_is_asked_for(
    checkout: Checkout,
) -> None:
    assert checkout.run('install').returncode == 0
    lab = '--no-deps --no-index --no-build-isolation -e mmedge_lab'
    locked = [f'--no-deps --require-hashes -r {name}.txt' for name in ('flight', 'ros')]
    locked.insert(1, lab)
    assert [' '.join(call.split()[2:]) for call in pip_calls(checkout)] == locked
    shutil.rmtree(checkout.root / '.venv')
    checkout.notes()
    assert checkout.run('install', MMEDGE_WITHOUT_HASHES='1').returncode == 0
    assert [' '.join(call.split()[2:]) for call in pip_calls(checkout)] == [
        *('-r flight.txt', lab, '-r ros.txt')
    ]
    checkout.notes()
    assert checkout.run('install').returncode == 0
    assert pip_calls(checkout) == []


def test_a_failed_build_is_not_taken_for_done(checkout: Checkout) -> None:
    done = checkout.run('replay', CMAKE_EXIT='1')
    assert (done.returncode, done.stdout) == (1, '')
    assert 'build.log' in done.stderr
    checkout.notes()
    assert checkout.run('replay').returncode == 0
    assert checkout.notes() == BUILD


def test_everything_missing_is_named_in_one_package_manager_line(checkout: Checkout) -> None:
    (checkout.tools / 'g++').unlink()
    sudo = '' if os.geteuid() == 0 else 'sudo '
    for manager, line in (
        ('', 'install a C++ compiler and Python 3.12 with its venv module'),
        ('dnf', 'dnf install -y gcc-c++ python3 python3-devel'),
        ('apt-get', f'{sudo}apt-get install -y g++ python3.11 python3.11-venv'),
    ):
        if manager:
            checkout.add_tool(manager, '#!/bin/sh\n')
        done = checkout.run('replay', PYTHON_HAS='3.11 ensurepip Python.h')
        assert (done.returncode, done.stdout) == (1, '')
        assert 'a C++ compiler, ensurepip and Python.h of python3' in done.stderr
        assert line in done.stderr
        assert not (checkout.root / '.venv').exists()
    # Where only the compiler is missing, only that is asked for.
    assert checkout.run('replay').stderr.splitlines()[-1].endswith('apt-get install -y g++')


def test_without_a_suitable_python_the_newest_packaged_one_is_named(checkout: Checkout) -> None:
    checkout.add_tool('python3', '#!/bin/sh\nexit 1\n')
    checkout.add_tool('apt-get', '#!/bin/sh\n')
    checkout.add_tool('apt-cache', '#!/bin/sh\n[ "$2" = python3.12-venv ]\n')
    done = checkout.run('replay')
    assert done.returncode == 1
    assert 'lacks Python 3.11, 3.12 or 3.13' in done.stderr
    assert 'python3.12 python3.12-venv python3.12-dev' in done.stderr.splitlines()[-1]


def test_a_second_interpreter_is_taken_where_the_first_does_not_suit(checkout: Checkout) -> None:
    (checkout.tools / 'python3').rename(checkout.tools / 'python3.12')
    checkout.add_tool('python3', '#!/bin/sh\nexit 1\n')
    assert checkout.run('replay').returncode == 0


def machine(checkout: Checkout, system: str, processor: str) -> Checkout:
    (checkout.tools / 'uname').unlink()
    checkout.add_tool('uname', f'#!/bin/sh\n[ "$1" = -s ] && echo {system} || echo {processor}\n')
    return checkout


def test_a_machine_without_wheels_is_pointed_to_an_installed_ros(checkout: Checkout) -> None:
    for system, processor in (('Linux', 'riscv64'), ('Darwin', 'arm64')):
        done = machine(checkout, system, processor).run('demo')
        assert done.returncode == 1
        assert f'{system} on {processor}' in done.stderr
        assert 'colcon build' in done.stderr
        assert not (checkout.root / '.venv').exists()


class TestAarch64:
    """No ROS 2 wheels: what needs no graph is installed, and nothing is built."""

    @pytest.fixture
    def board(self, checkout: Checkout) -> Checkout:
        (checkout.tools / 'g++').unlink()
        return machine(checkout, 'Linux', 'aarch64')

    def test_the_libraries_alone_are_installed_and_commands_run_from_the_sources(
        self, board: Checkout
    ) -> None:
        done = board.run('replay', 'a bag')
        assert done.stdout.splitlines() == [
            *('mmedge_ros.commands.start', 'replay', 'a bag', f'cwd={board.root}'),
            f'PYTHONPATH={board.root}',
        ]
        assert 'demo, up, record, profile and replay --live need ROS 2' in done.stderr
        assert kinds(board.notes()) == ['venv', *TWO_PIPS]
        assert board.run('replay', 'a bag').stderr == ''
        assert board.notes() == []

    def test_a_python_without_headers_will_do(self) -> None:
        probe = re.search(r"PROBE='(.*?)'\n", (ROOT / 'mmedge').read_text(), re.DOTALL)
        assert probe is not None
        no_headers = 'import sysconfig; sysconfig.get_path = lambda _: "/nowhere"\n' + probe[1]
        lacking = {
            name: subprocess.run(
                [sys.executable, '-c', no_headers, name],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()[1:]
            for name in ('x86_64', 'aarch64')
        }
        assert lacking == {'x86_64': ['Python.h'], 'aarch64': []}

    def test_the_tests_are_refused_with_the_reason(self, board: Checkout) -> None:
        done = board.run('test')
        assert (done.returncode, 'need ROS 2' in done.stderr) == (1, True)


def test_another_ros_is_left_behind_and_what_the_user_sets_for_libraries_and_transport_is_kept(
    ready: Checkout,
) -> None:
    done = ready.run(
        AMENT_PREFIX_PATH='/opt/ros/jazzy',
        LD_LIBRARY_PATH='/opt/ros/jazzy/lib',
        PYTHONPATH='/opt/ros/jazzy/lib/python3.12/site-packages',
        RMW_IMPLEMENTATION='rmw_cyclonedds_cpp',
        ROS_DISTRO='jazzy',
        _ROS_WHEELS_BOOTSTRAP_COMPLETE='1',
    )
    assert done.stdout.splitlines()[2:] == [f'AMENT_PREFIX_PATH={ready.root}/.venv']
    done = ready.run(LD_LIBRARY_PATH='/opt/cuda/lib', FASTDDS_DEFAULT_PROFILES_FILE='/mine.xml')
    assert 'LD_LIBRARY_PATH=/opt/cuda/lib' in done.stdout
    assert 'FASTDDS_DEFAULT_PROFILES_FILE=/mine.xml' in done.stdout


def test_the_tests_need_more_and_pass_their_arguments_on(ready: Checkout) -> None:
    (ready.root / '.venv/.stamp-test').unlink(missing_ok=True)
    done = ready.run('test', '-k', 'radar')
    assert (done.returncode, done.stdout) == (0, 'data: none\n1 passed\n')
    assert kinds(ready.notes()) == [
        *ONE_PIP,
        'ruff format',
        'ruff check',
        'lint-imports',
        'shellcheck -x',
        'mypy --num-workers',
        'pytest -k',
    ]


COMPUTING = 'regression lab/training/test_with_torch.py lab/training/test_detectors_with_torch.py'


def said_of_all(data: str) -> str:
    return ''.join(f'data: {data}\n{count} passed\n' for count in (1, 3, 1))


def test_without_arguments_what_only_computes_gives_way_to_the_live_tests_and_the_rest_follows(
    ready: Checkout,
) -> None:
    done = ready.run('test')
    assert done.stdout == said_of_all('none')
    lines = ready.notes_file.read_text().splitlines()
    *beside, rest = [line for line in lines if line.startswith('pytest')]
    paths = [f'test/{path}' for path in COMPUTING.split()]
    usual = int(os.popen('nice').read())
    assert sorted(beside) == [
        f'pytest -n logical --dist loadfile {" ".join(paths)}, nice {min(usual + 10, 19)}',
        f'pytest -o cache_dir={ready.root}/.venv/.live-tests -n 2 --dist loadfile '
        f'--no-loadscope-reorder test/ros, nice {usual}',
    ]
    apart = ' '.join(f'--ignore {path}' for path in ('test/ros', *paths))
    options = '-n logical --dist loadfile --no-loadscope-reorder'
    assert rest == f'pytest {options} {apart}, nice {usual}'


def test_what_only_computes_is_given_up_with_the_live_tests(ready: Checkout, gate: Path) -> None:
    process = ready.start('test', GATE=str(gate), STOP_IN='pytest')
    pid = int(gate.read_text())
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


FLAKY, BROKEN = 'test/ros/test_a.py::test_one[x]', 'test/ros/test_b.py::test_two'


def test_a_live_test_that_passes_when_it_is_tried_again_passes_and_is_named(
    ready: Checkout,
) -> None:
    done = ready.run('test', LIVE_TESTS=f'{FLAKY} {BROKEN}')
    assert done.returncode == 0
    *told, rest = done.stderr.splitlines()
    assert rest.startswith('mmedge: tests: ')
    assert told[-2:] == [
        f'mmedge: unsteady: {name} passed in its second try' for name in (FLAKY, BROKEN)
    ]
    # One that fails three times fails.
    ready.notes()
    done = ready.run('test', LIVE_TESTS=f'{FLAKY} {BROKEN}', FAILED_TWICE=BROKEN)
    assert done.returncode == 1
    *told, _, last = done.stderr.splitlines()
    assert told[-3:] == [
        'mmedge: live tests that failed: a second try, alone',
        f'mmedge: unsteady: {FLAKY} passed in its second try',
        'mmedge: live tests that failed: a third try, alone',
    ]
    assert last == 'mmedge: failed: live tests'
    assert ready.notes_file.read_text().count('.live-tests --last-failed test/ros') == 2


def test_live_tests_that_could_not_run_are_not_tried_again(ready: Checkout) -> None:
    done = ready.run('test', LIVE_TESTS=FLAKY, PYTEST_EXIT='2')
    assert (done.returncode, 'unsteady' in done.stderr) == (1, False)
    assert '--last-failed' not in ready.notes_file.read_text()


def test_training_gets_an_environment_of_its_own_in_which_that_of_the_flight_is_found(
    ready: Checkout,
) -> None:
    shutil.rmtree(ready.root / '.venv-train', ignore_errors=True)
    done = ready.run('lab', 'train', 'detector', 'a set')
    assert (done.returncode, done.stdout.splitlines()[1:5]) == (
        0,
        ['lab', 'train', 'detector', 'a set'],
    )
    assert 'installing torch' in done.stderr
    assert 'AGPL-3.0' in done.stderr
    lines = ready.notes_file.read_text().splitlines()
    assert [' '.join(line.split()) for line in lines if line] == [
        'venv',
        'pip-m pip install --no-compile -r train.txt',
        'pip-m pip install --no-compile --no-deps --require-hashes -r train_alone.txt',
    ]
    link = ready.root / '.venv-train/lib/python3.11/site-packages/flight.pth'
    assert link.read_text() == (f'{ready.root}/.venv/lib/python3.11/site-packages\n{ready.root}\n')
    ready.notes()
    assert ready.run('lab', 'train', '--help').stderr == ''
    assert ready.notes() == []


def test_install_brings_everything_and_ends_and_training_only_where_it_is_named(
    checkout: Checkout,
) -> None:
    done = checkout.run('install')
    assert (done.returncode, done.stdout) == (0, '')
    assert kinds(checkout.notes()) == ['venv', *PIP, *BUILD]
    assert checkout.run('install', 'train').returncode == 0
    assert kinds(checkout.notes()) == ['venv', *TWO_PIPS]
    assert checkout.run('install', 'everything').returncode == 1


def test_other_trackers_are_installed_only_where_they_are_named(ready: Checkout) -> None:
    (ready.root / '.venv/.stamp-rivals').unlink(missing_ok=True)
    assert ready.run('install', 'rivals').returncode == 0
    lines = ready.notes_file.read_text().splitlines()
    assert [' '.join(line.split()) for line in lines if line] == [
        'pip-m pip install --no-compile --no-deps --require-hashes -r rivals.txt',
        'pip-m pip install --no-compile --no-deps --require-hashes -r rivals_alone.txt',
    ]
    ready.notes()
    assert ready.run('install', 'rivals').returncode == 0
    assert ready.notes() == []


def test_networks_are_quantised_where_onnx_is_and_torch_is_installed_only_where_it_is_not(
    ready: Checkout,
) -> None:
    shutil.rmtree(ready.root / '.venv-train', ignore_errors=True)
    assert ready.run('demo').returncode == 0
    assert ready.run('model', 'list').returncode == 0
    onnx = ready.root / '.venv/lib/python3.11/site-packages/onnx'
    onnx.mkdir(parents=True)
    done = ready.run('lab', 'model', 'quantize')  # as after ./mmedge test
    assert (done.returncode, ready.notes()) == (0, [])
    assert not (ready.root / '.venv-train').exists()
    onnx.rmdir()
    done = ready.run('lab', 'model', 'quantize')
    assert (done.returncode, done.stdout.splitlines()[1:4]) == (0, ['lab', 'model', 'quantize'])
    assert kinds(ready.notes()) == ['venv', *TWO_PIPS]


def test_a_cut_short_installation_of_torch_is_begun_afresh_and_leaves_the_rest(
    ready: Checkout,
) -> None:
    shutil.rmtree(ready.root / '.venv-train', ignore_errors=True)
    assert ready.run('lab', 'train', PIP_SAYS='something else').returncode == 1
    ready.notes()
    done = ready.run('lab', 'train')
    assert (done.returncode, '.venv-train here was left half made' in done.stderr) == (0, True)
    assert kinds(ready.notes()) == ['venv', *ONE_PIP, *ONE_PIP]


def test_a_failed_check_hides_no_other_and_what_fails_is_told_at_the_end(ready: Checkout) -> None:
    done = ready.run('test', FAILING='mypy', COMPUTING_EXIT='1')
    assert done.returncode == 1
    last = 'mmedge: failed: types tests beside the live ones'
    assert done.stderr.splitlines()[-1] == last
    assert done.stdout.endswith('1 passed\n')


def test_ci_runs_the_tests_with_the_recorded_data_beside_the_project(ready: Checkout) -> None:
    (ready.root / '.ci').mkdir()
    script = Path(shutil.copy(ROOT / '.ci/run', ready.root / '.ci/run'))
    assert ready.run(script=script).stdout == said_of_all('none')
    data = ready.root.parent / 'shared/data'
    data.mkdir(parents=True)
    assert ready.run(script=script, cwd=data).stdout == said_of_all(str(data))


@pytest.mark.skipif(
    Path(sys.prefix).resolve() != ROOT / '.venv', reason='needs the environment ./mmedge made'
)
def test_the_real_script_prints_its_help_from_any_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / 'mmedge', '--help'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 'usage' in done.stdout.lower()
