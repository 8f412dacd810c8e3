"""The package as a whole: metadata, layers, messages, and what the builds install."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest
from packaging.requirements import Requirement

import mmedge_ros

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / 'mmedge_ros'
NODES = sorted(path.stem for path in (PACKAGE / 'ros/nodes').glob('[!_]*.py'))
MESSAGES = sorted(
    path for kind in ('msg', 'srv', 'action') for path in (ROOT / kind).glob(f'*.{kind}')
)

ROS_PACKAGE = re.compile(
    r'(rclpy|rcl_interfaces|builtin_interfaces|\w+_msgs|\w+_msgs_py|cv_bridge|tf2_ros'
    r'|launch|launch_ros|rosbag2_py)(\..*)?'
)
GENERATED = re.compile(r'mmedge_ros\.(msg|srv|action)(\..*)?')

# Tests of what was installed make sense only in the environment that ./mmedge made.
in_environment = pytest.mark.skipif(
    Path(sys.prefix).resolve() != ROOT / '.venv', reason='needs the environment ./mmedge made'
)
LINT_IMPORTS = Path(sys.executable).with_name('lint-imports')


def imported(path: Path) -> Iterator[str]:
    """List the absolute names a module imports, `import_module('...')` included."""
    for node in ast.walk(ast.parse(path.read_text(), path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = path.relative_to(ROOT).with_suffix('').parts
            base = '.'.join(parts[: len(parts) - node.level]) if node.level else ''
            module = '.'.join(filter(None, (base, node.module)))
            yield from (f'{module}.{alias.name}' for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            function = ast.unparse(node.func).rpartition('.')[2]
            name = node.args[0]
            if function in ('import_module', '__import__') and isinstance(name, ast.Constant):
                yield str(name.value)


def offenders(pattern: re.Pattern[str], allowed: tuple[str, ...]) -> list[str]:
    found = []
    for path in sorted(PACKAGE.rglob('*.py')):
        place = path.relative_to(PACKAGE).as_posix()
        if not place.startswith(allowed):
            found += [f'{place}: {name}' for name in imported(path) if pattern.fullmatch(name)]
    return found


# ------------------------------------------------------------------------------ layers


def test_imports_are_found_in_every_disguise(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], 'ROOT', tmp_path)
    module = tmp_path / 'mmedge_ros/tracking/module.py'
    module.parent.mkdir(parents=True)
    module.write_text(
        'import rclpy.node\n'
        'from ..ros import conversions\n'
        'def f():\n'
        '    from mmedge_ros import msg\n'
        '    importlib.import_module("std_msgs.msg")\n'
    )
    names = set(imported(module))
    expected = {'rclpy.node', 'mmedge_ros.ros.conversions', 'mmedge_ros.msg', 'std_msgs.msg'}
    assert names == expected
    assert all(GENERATED.fullmatch(name) or name in expected for name in names)


def test_only_the_ros_folder_imports_generated_messages() -> None:
    # Other ROS packages are held by import-linter, which cannot see what a build generates.
    assert offenders(GENERATED, ('ros/',)) == []


def test_launch_files_import_nothing_that_does_not_fly() -> None:
    found = [
        f'{path.name}: {name}'
        for path in sorted((ROOT / 'launch').glob('*.py'))
        for name in imported(path)
        if name.startswith(('mmedge_lab', 'mmedge_ros.commands'))
    ]
    assert found == []


FORBIDDEN = {
    'mmedge_ros/pipeline/unit_intake.py': ('What flies', 'mmedge_lab.simulation.build'),
    'mmedge_ros/commands/ask.py': ('What flies', 'mmedge_lab.judging'),
    'mmedge_ros/sensing/rate_control.py': ('Rooms of what', 'mmedge_ros.pipeline.unit_intake'),
    'mmedge_ros/geometry/rotations.py': ('Rooms of what', 'mmedge_ros.commands.main'),
    'mmedge_lab/simulation/build.py': ('Rooms of the lab', 'mmedge_lab.judging'),
    'mmedge_ros/tracking/tracker.py': ('Only ros', 'rclpy'),
    'mmedge_lab/judging/strata_sums.py': ('Only ros', 'sensor_msgs'),
    'mmedge_ros/commands/up.py': ('Only ros', 'rclpy'),
    'mmedge_ros/windows/feature_fusion.py': ('The flight path', 'torch'),
    'mmedge_lab/judging/bench.py': ('The flight path', 'ultralytics'),
}


@pytest.mark.skipif(not LINT_IMPORTS.exists(), reason='import-linter is not installed')
def test_each_forbidden_import_breaks_its_contract(tmp_path: Path) -> None:
    # That none is broken as it is, `./mmedge test` sees by itself.
    for name in ('mmedge_ros', 'mmedge_lab'):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns('__pycache__'))
    shutil.copy(ROOT / 'pyproject.toml', tmp_path)
    for place, (_, imported_name) in FORBIDDEN.items():
        with (tmp_path / place).open('a') as module:
            module.write(f'\n\ndef _forbidden() -> None:\n    import {imported_name}\n')
    done = subprocess.run(
        [LINT_IMPORTS, '--no-cache'],
        cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(tmp_path), 'COLUMNS': '200', 'NO_COLOR': '1'},
        capture_output=True,
        text=True,
        check=False,
    )
    summary, _, found = done.stdout.partition('Broken contracts')
    for place, (contract, imported_name) in FORBIDDEN.items():
        assert re.search(rf'^{contract}.* BROKEN', summary, re.MULTILINE), contract
        importer = place.removesuffix('.py').replace('/', '.')
        assert re.search(rf'\b{importer} -> {imported_name}\b', found), (place, done.stdout)


def test_the_command_line_starts_with_no_library_that_takes_time() -> None:
    code = 'import sys, mmedge_ros.commands.main; print(*sys.modules)'
    found = set(run(sys.executable, '-c', code, cwd=ROOT).split())
    assert found.isdisjoint({'rclpy', 'cv2', 'matplotlib', 'onnxruntime', 'scipy', 'torch'})


@pytest.mark.parametrize('node', NODES)
def test_a_node_is_thin(node: str) -> None:
    lines = (PACKAGE / 'ros/nodes' / f'{node}.py').read_text().count('\n')
    assert lines <= 250, f'{node}.py has {lines} lines; logic belongs into the core'


# ------------------------------------------------------------------------------ metadata


def package_xml() -> ElementTree.Element:
    return ElementTree.parse(ROOT / 'package.xml').getroot()


def pinned() -> dict[str, str]:
    lines = (ROOT / 'requirements/constraints.txt').read_text().splitlines()
    pins = (line.split('==') for line in lines if line and not line.startswith('#'))
    return {normal(name): version for name, version in pins}


def listed(name: str) -> set[str]:
    """Return the packages a requirements file lists, without extras."""
    lines = (ROOT / 'requirements' / name).read_text().splitlines()
    return {normal(line) for line in lines if line and line[0] not in '#-'}


def normal(name: str) -> str:
    return re.sub(r'[-_.]+', '-', re.split(r'[\[<>=;]', name)[0].strip()).lower()


def pip_dependencies() -> set[str]:
    text = (ROOT / 'pyproject.toml').read_text()
    block = re.search(r'^dependencies = \[(.*?)\]', text, re.MULTILINE | re.DOTALL)
    assert block
    return {normal(name) for name in re.findall(r"'([^']+)'", block[1])}


def test_package_xml_is_accepted_by_the_tools_of_ros() -> None:
    catkin_pkg = pytest.importorskip('catkin_pkg.package')
    warnings: list[str] = []
    package = catkin_pkg.parse_package(str(ROOT / 'package.xml'), warnings=warnings)
    package.validate(warnings=warnings)
    assert warnings == []
    assert package.get_build_type() == 'ament_cmake'
    assert [group.name for group in package.member_of_groups] == ['rosidl_interface_packages']


def test_the_changelog_is_read_by_the_tools_of_ros() -> None:
    changelog = pytest.importorskip('catkin_pkg.changelog')
    text = (ROOT / 'CHANGELOG.rst').read_text()
    # As bloom prepares a release: only what has a date has a version for these tools.
    released = text.replace('(unreleased)', '(2026-01-02)')
    read = changelog.populate_changelog_from_rst(changelog.Changelog('mmedge_ros'), released)
    versions = [version for version, _, _ in read.foreach_version()]
    assert versions == re.findall(r'^(\d+\.\d+\.\d+) \(', text, re.MULTILINE)
    assert all(read.get_content_of_version(version) for version in versions)


def test_the_oldest_libraries_that_are_tested_are_the_bounds_of_the_package() -> None:
    text = (ROOT / 'pyproject.toml').read_text()
    block = text.split('dependencies = [')[1].split(']')[0]
    bounds = dict(re.findall(r"'([\w-]+)>=([\d.]+)'", block))
    pins = (ROOT / 'requirements/oldest.txt').read_text()
    assert bounds.keys() | {'pyserial'} >= pip_dependencies() - {'pyyaml'}
    for name, version in bounds.items():
        assert re.search(rf'^{name}=={re.escape(version)}(\.|$)', pins, re.MULTILINE), name


def test_the_version_is_the_same_everywhere() -> None:
    version = package_xml().findtext('version')
    assert version == mmedge_ros.__version__


def test_every_pip_dependency_is_listed_and_pinned() -> None:
    # setuptools puts the laboratory into the environment of ./mmedge.
    assert pip_dependencies() == listed('flight.txt') - {'setuptools'}
    for name in ('flight.txt', 'ros.txt', 'test.txt', 'rivals.txt', 'model.txt'):
        assert listed(name) <= pinned().keys()


LOCKED = sorted(path.name for path in (ROOT / 'requirements/locked').glob('*.txt'))


def locked(name: str) -> dict[str, str]:
    """Return versions by package."""
    heading, *rest = (ROOT / 'requirements/locked' / name).read_text().split('\n', 1)
    entry = r'([\w.-]+)==([\w.]+)(?: \\\n  --hash=sha256:[0-9a-f]{64})+\n'
    assert heading == f'# Made of requirements/{name} by bootstrap/lock_requirements.py'
    assert re.fullmatch(f'(?:{entry})+', rest[0]), 'something else is written there'
    return {normal(found[1]): found[2] for found in re.finditer(entry, rest[0])}


def test_what_the_script_installs_is_locked_at_the_pinned_versions_and_names_no_server() -> None:
    groups = ('flight', 'ros', 'test', 'rivals', 'rivals_alone', 'train_alone')
    assert sorted(f'{group}.txt' for group in groups) == LOCKED
    for name in LOCKED:
        versions = locked(name)
        assert listed(name) <= versions.keys(), 'run bootstrap/lock_requirements.py'
        if 'alone' not in name:
            assert versions.items() <= pinned().items(), 'run bootstrap/lock_requirements.py'


@in_environment
@pytest.mark.parametrize('groups', [('flight',), ('flight', 'ros'), ('flight', 'ros', 'test')])
def test_all_that_locked_packages_need_is_locked(groups: tuple[str, ...]) -> None:
    # pip is told to look for no dependencies.
    have = {package for group in groups for package in locked(f'{group}.txt')}
    missing = {
        f'{package} needs {need.name}'
        for package in have
        for need in needs(package)
        if normal(need.name) not in have
    }
    assert missing == set(), 'run bootstrap/lock_requirements.py'


def needs(package: str) -> list[Requirement]:
    try:
        lines = metadata.requires(package) or []
    except metadata.PackageNotFoundError:
        return []
    wanted = [Requirement(line) for line in lines]
    return [need for need in wanted if need.marker is None or need.marker.evaluate({'extra': ''})]


def test_what_must_never_be_installed_is_not_pinned() -> None:
    unwanted = {'torch', 'torchvision', 'ultralytics', 'opencv-python', 'lark'}
    assert unwanted & pinned().keys() == set()


def test_what_trains_is_pinned() -> None:
    files = [ROOT / 'requirements' / name for name in ('train.txt', 'train_alone.txt')]
    lines = [line for file in files for line in file.read_text().splitlines()]
    pins = {line for line in lines if '==' in line}
    assert {normal(pin) for pin in pins} == {'torch', 'torchvision', 'ultralytics'}
    assert listed('train.txt') - {'torch', 'torchvision'} <= pinned().keys()


def test_every_pip_dependency_has_a_rosdep_key_or_is_installed_by_hand() -> None:
    keys = {
        'opencv-python-headless': 'python3-opencv',
        'pillow': 'python3-pil',
        'pyserial': 'python3-serial',
        'pyyaml': 'python3-yaml',
    }
    declared = {element.text for element in package_xml().iter('exec_depend')}
    by_hand = pip_dependencies() & listed('ubuntu.txt')
    named = {keys.get(name, f'python3-{name}') for name in pip_dependencies() - by_hand}
    assert named <= declared
    assert not any(key.endswith('-pip') for key in declared if key)


def test_the_marker_of_the_ament_index_is_installed_by_pip() -> None:
    assert (ROOT / 'resource/mmedge_ros').read_bytes() == b''
    assert "'share/ament_index/resource_index/packages'" in (ROOT / 'setup.py').read_text()


def test_every_ros_package_the_nodes_import_is_declared() -> None:
    root = package_xml()
    declared = {element.text for tag in ('depend', 'exec_depend') for element in root.iter(tag)}
    paths = [*(PACKAGE / 'ros').rglob('*.py'), *(ROOT / 'launch').glob('*.py')]
    names = {name for path in paths for name in imported(path) if ROS_PACKAGE.fullmatch(name)}
    # Users of PX4 build px4_msgs, of the branch of their firmware; rosdep cannot choose it.
    assert {name.split('.')[0] for name in names} - {'mmedge_ros', 'px4_msgs'} <= declared


def test_no_two_public_classes_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted([*PACKAGE.rglob('*.py'), *(ROOT / 'mmedge_lab').rglob('*.py')]):
        for name in re.findall(r'^class ([A-Za-z]\w*)', path.read_text(), re.MULTILINE):
            places.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


# ------------------------------------------------------------------------------ messages


@pytest.mark.parametrize('path', MESSAGES, ids=lambda path: path.stem)
def test_a_message_says_what_it_is_and_what_each_field_means(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert re.match(r'# \S.+', lines[0]), f'{path.name} does not begin by saying what it is'
    for line in filter(lambda line: line not in ('', '---'), lines[1:]):
        field, _, meaning = line.partition('#')
        # A field of another message type is explained by that message.
        explained = '/' in field or meaning.strip()
        assert explained, f'{path.name}: `{line}` has no unit and no meaning'


# ------------------------------------------------------------------------------ executables


def executable_names() -> set[str]:
    text = (ROOT / 'CMakeLists.txt').read_text()
    single = re.findall(r'^install_executable\((\w+)', text, re.MULTILINE)
    (nodes,) = re.findall(r'^foreach\(node ([\w\s]+)\)', text, re.MULTILINE)
    return {*single, *nodes.split()}


def test_every_node_has_an_executable() -> None:
    assert executable_names() == {'mmedge', *NODES}


@in_environment
def test_installed_executables_can_be_run_and_name_a_module_that_exists() -> None:
    folder = Path(sys.prefix) / 'lib/mmedge_ros'
    assert {path.name for path in folder.iterdir()} == executable_names()
    for path in folder.iterdir():
        assert os.access(path, os.X_OK)
        found = re.search(r'^from (\S+) import main$', path.read_text(), re.MULTILINE)
        assert found, path
        assert importlib.util.find_spec(found[1]), f'{path.name} starts {found[1]}'


@pytest.mark.parametrize('starter', ['', 'env --block-signal=INT'])
def test_an_executable_finds_its_interpreter_in_a_path_with_spaces(
    starter: str, tmp_path: Path
) -> None:
    interpreter = tmp_path / 'with a space' / 'python'
    interpreter.parent.mkdir()
    interpreter.symlink_to(sys.executable)
    (tmp_path / 'node.py').write_text('import sys\ndef main(): print(sys.argv[1:]); return 3\n')
    text = (ROOT / 'cmake/executable.in').read_text()
    values = {'Python3_EXECUTABLE': interpreter, 'module': 'node', 'UNINTERRUPTED': starter}
    for name, value in values.items():
        text = text.replace(f'@{name}@', str(value))
    stub = tmp_path / 'stub'
    stub.write_text(text)
    stub.chmod(0o755)
    done = subprocess.run([stub, 'a b', "c'd"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("['a b', \"c'd\"]\n", 3), done.stderr


# ------------------------------------------------------------------------------ builds


def copy_of_sources(target: Path) -> Path:
    ignored = shutil.ignore_patterns('.*', '__pycache__', 'build', 'install', 'log', '*.egg-info')
    return Path(shutil.copytree(ROOT, target, ignore=ignored))


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command without terminal; return its output, or show all of it when it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@in_environment
def test_pip_installs_the_package_without_messages_where_ros_is_absent(tmp_path: Path) -> None:
    sources, target = copy_of_sources(tmp_path / 'sources'), tmp_path / 'target'
    pip = [sys.executable, '-m', 'pip', 'install', '--quiet', '--no-index', '--no-deps']
    run(
        *pip,
        '--no-build-isolation',
        '--disable-pip-version-check',
        '--target',
        target,
        sources,
        cwd=tmp_path,
        AMENT_PREFIX_PATH=str(tmp_path / 'nothing here'),
    )
    assert (target / 'mmedge_ros/core/data_types.py').is_file()
    assert not (target / 'mmedge_ros/msg').exists()
    assert (target / 'share/mmedge_ros/config/fastdds.xml').is_file()
    wheel_facts = (target / f'mmedge_ros-{mmedge_ros.__version__}.dist-info/WHEEL').read_text()
    assert 'Root-Is-Purelib: true' in wheel_facts


# ./mmedge itself has built all interfaces by the same description.
ONE_MESSAGE = 'StageTiming.msg'
COLCON_CHECK = """
. install/setup.sh
python -P -c '
import mmedge_ros.core.data_types, mmedge_ros.msg
from rclpy.serialization import deserialize_message, serialize_message
message = mmedge_ros.msg.StageTiming(stage="fusion")
assert deserialize_message(serialize_message(message), mmedge_ros.msg.StageTiming) == message
print(mmedge_ros.__file__, mmedge_ros.msg.__file__)
'
install/mmedge_ros/lib/mmedge_ros/mmedge --help
ls install/mmedge_ros/share/mmedge_ros
"""


@in_environment
@pytest.mark.timeout(400)
def test_colcon_builds_a_workspace_whose_messages_and_executables_work(tmp_path: Path) -> None:
    prefix = sys.prefix
    sources = copy_of_sources(tmp_path / 'src/mmedge_ros')
    for path in [path for kind in ('msg', 'srv', 'action') for path in (sources / kind).iterdir()]:
        if path.name != ONE_MESSAGE:
            path.unlink()
    environment = {
        'PATH': f'{prefix}/bin{os.pathsep}{os.environ["PATH"]}',
        'AMENT_PREFIX_PATH': prefix,
        'CMAKE_PREFIX_PATH': prefix,
        'COLCON_PYTHON_EXECUTABLE': str(tmp_path / 'python3'),
    }
    # The set-up scripts that colcon writes cannot start a Python whose path has spaces.
    (tmp_path / 'python3').symlink_to(Path(sys.executable).resolve())
    options = [
        f'-DPython3_EXECUTABLE={prefix}/bin/python',
        '-DPython3_FIND_VIRTUALENV=ONLY',
        '-DBUILD_TESTING=OFF',
        f'-DCMAKE_PROJECT_INCLUDE={ROOT}/cmake/wheel_fixes.cmake',
    ]
    build = ['colcon', 'build', '--packages-select', 'mmedge_ros', '--cmake-args', '-G', 'Ninja']
    run(*build, *options, cwd=tmp_path, **environment)
    output = run('sh', '-c', COLCON_CHECK, cwd=tmp_path, **environment)
    installed = f'{tmp_path}/install/mmedge_ros/lib/'
    assert output.count(installed) == 2, output
    assert 'usage' in output.lower()
    assert {'config', 'launch', 'msg', 'package.xml'} <= set(output.split())
