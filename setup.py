"""pip's way in; everything static is in pyproject.toml.

Where ROS 2 is found, CMakeLists.txt is built as it stands and its result is packed, messages
included. Elsewhere the package installs without messages: replay, simulation and training
work, nodes do not.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from xml.etree import ElementTree

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
SHARED = ('action', 'config', 'launch', 'models', 'msg', 'rviz', 'srv', 'package.xml')


def package_version() -> str:
    version = ElementTree.parse(HERE / 'package.xml').findtext('version')
    if version is None:
        raise SystemExit('package.xml has no <version>')
    return version


def ros_prefixes() -> list[Path]:
    """Where ROS 2 is installed: the sourced prefixes, else this environment; may be empty."""
    listed = os.environ.get('AMENT_PREFIX_PATH') or sys.prefix
    prefixes = [Path(prefix) for prefix in listed.split(os.pathsep) if prefix]
    complete = any((prefix / 'share/rosidl_default_generators').is_dir() for prefix in prefixes)
    return prefixes if complete else []


def data_files(folder: Path, *names: str, below: str = '.') -> list[tuple[str, list[str]]]:
    """Group the files in `names` of `folder` as setuptools installs them `below` the prefix."""
    grouped: dict[str, list[str]] = {}
    for name in names:
        path = folder / name
        for file in [path] if path.is_file() else sorted(path.rglob('*')):
            if file.is_file() and '__pycache__' not in file.parts:
                target = Path(below) / file.relative_to(folder).parent
                grouped.setdefault(str(target), []).append(os.path.relpath(file, HERE))
    return sorted(grouped.items())


def cmake_environment(prefixes: list[Path]) -> dict[str, str]:
    """Undo pip's build isolation: the generators are Python programs of the ROS installation."""
    scripts = sysconfig.get_path('scripts')
    version = f'python{sys.version_info.major}.{sys.version_info.minor}'
    python_folders = [
        prefix / tail
        for prefix in prefixes
        for tail in (f'lib/{version}/site-packages', f'local/lib/{version}/dist-packages')
    ]
    joined = os.pathsep.join(map(str, prefixes))
    return {
        **{name: value for name, value in os.environ.items() if name != 'DESTDIR'},
        'PATH': os.pathsep.join([scripts, os.environ.get('PATH', os.defpath)]),
        'PYTHONPATH': os.pathsep.join(str(p) for p in python_folders if p.is_dir()),
        'AMENT_PREFIX_PATH': joined,
        'CMAKE_PREFIX_PATH': joined,
    }


def run_cmake(prefixes: list[Path], build: Path, target: Path) -> None:
    environment = cmake_environment(prefixes)
    cmake = shutil.which('cmake', path=environment['PATH'])
    if cmake is None:
        raise SystemExit('ROS 2 was found but cmake was not; install cmake to build the messages')
    # Libraries find each other wherever the package ends up below a prefix.
    rpath = '$ORIGIN;$ORIGIN/../../..'
    options = [
        f'-DPython3_EXECUTABLE={sys.executable}',
        '-DBUILD_TESTING=OFF',
        '-DCMAKE_BUILD_TYPE=Release',
        f'-DCMAKE_INSTALL_PREFIX={target}',
        f'-DCMAKE_INSTALL_RPATH={rpath}',
    ]
    if shutil.which('ninja', path=environment['PATH']):
        options += ['-G', 'Ninja']
    if importlib.util.find_spec('ros_wheels_bootstrapper'):
        options += [
            '-DPython3_FIND_VIRTUALENV=ONLY',
            f'-DCMAKE_PROJECT_INCLUDE={HERE / "cmake/wheel_fixes.cmake"}',
        ]
    for step in (
        ['-S', str(HERE), '-B', str(build), *options],
        ['--build', str(build)],
        ['--install', str(build)],
    ):
        subprocess.run([cmake, *step], check=True, env=environment)


class BuildWithMessages(build_py):
    """Adds what CMake builds to the Python modules."""

    def run(self) -> None:
        super().run()
        prefixes = ros_prefixes()
        if not prefixes:
            print('ROS 2 was not found: installing without messages and nodes', file=sys.stderr)
            return
        if self.editable_mode:
            raise SystemExit(
                'an editable install cannot hold the messages; use ./mmedge or '
                '`colcon build --symlink-install`, which also follow the sources'
            )
        build = Path(self.get_finalized_command('build').build_temp).resolve() / 'cmake'
        target = build / 'install'
        shutil.rmtree(target, ignore_errors=True)
        run_cmake(prefixes, build, target)
        (built,) = (file.parent for file in target.rglob('mmedge_ros/__init__.py'))
        shutil.copytree(
            built,
            Path(self.build_lib) / 'mmedge_ros',
            ignore=shutil.ignore_patterns('__pycache__'),
            dirs_exist_ok=True,
        )
        shutil.rmtree(built.parent)
        self.distribution.data_files = data_files(target, 'include', 'lib', 'share')


class MessageDistribution(Distribution):
    """Says that the wheel holds compiled code exactly where messages are built."""

    def has_ext_modules(self) -> bool:
        return bool(ros_prefixes())


setup(
    version=package_version(),
    cmdclass={'build_py': BuildWithMessages},
    distclass=MessageDistribution,
    data_files=[
        *data_files(HERE, *SHARED, below='share/mmedge_ros'),
        ('share/ament_index/resource_index/packages', ['resource/mmedge_ros']),
    ],
)
