"""Interpreters, packages and ROS environments as users have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_ros.preflight.finding import Finding, State
from mmedge_ros.preflight.software_checks import check_python, check_ros

WHEELS = '/home/pilot/.venv/lib/python3.12/site-packages/rclpy/__init__.py'
JAZZY = '/opt/ros/jazzy/lib/python3.12/site-packages/rclpy/__init__.py'


def ros(rclpy: str | None = WHEELS, **environment: str) -> dict[str, Finding]:
    return {f.subject: f for f in check_ros(environment, rclpy, ())}


def test_without_ros_it_is_said_what_still_works() -> None:
    (finding,) = check_ros({}, None, ())
    assert finding.state is State.WRONG
    assert 'offline replay works' in finding.words
    assert './mmedge' in finding.remedy


@pytest.mark.parametrize(
    ('rclpy', 'prefixes', 'state'),
    [
        (WHEELS, '/home/pilot/.venv', State.OK),
        (JAZZY, '/home/pilot/ws/install:/opt/ros/jazzy', State.OK),
        (WHEELS, '/opt/ros/jazzy', State.WRONG),
        (JAZZY, '/opt/ros/jazzy:/opt/ros/humble', State.WRONG),
    ],
)
def test_two_ros_in_one_environment_are_wrong(rclpy: str, prefixes: str, state: State) -> None:
    assert ros(rclpy, AMENT_PREFIX_PATH=prefixes)['ROS 2'].state is state


@pytest.mark.parametrize(
    ('text', 'state'),
    [
        ('', State.OK),
        ('42', State.OK),
        ('101', State.OK),
        ('102', State.NOTE),
        ('233', State.WRONG),
        ('-1', State.WRONG),
        ('\udcff\x1b[31m', State.WRONG),
        ('²', State.WRONG),
        ('9' * 5000, State.WRONG),
    ],
)
def test_domains_are_judged_by_their_ports(text: str, state: State) -> None:
    assert ros(ROS_DOMAIN_ID=text)['domain'].state is state


@pytest.mark.parametrize(
    ('variables', 'state'),
    [
        ({}, State.OK),
        ({'ROS_AUTOMATIC_DISCOVERY_RANGE': 'OFF'}, State.WRONG),
        ({'ROS_LOCALHOST_ONLY': '1'}, State.NOTE),
        ({'ROS_LOCALHOST_ONLY': '0'}, State.OK),
    ],
)
def test_settings_of_discovery(variables: dict[str, str], state: State) -> None:
    assert ros(**variables)['discovery'].state is state


def test_the_profile_of_the_middleware_must_be_a_file(tmp_path: Path) -> None:
    profile = tmp_path / 'fastdds.xml'
    name = 'FASTDDS_DEFAULT_PROFILES_FILE'
    assert ros(**{name: str(profile)})['middleware'].state is State.WRONG
    profile.touch()
    assert ros(**{name: str(profile)})['middleware'].state is State.OK
    assert ros()['middleware'].state is State.NOTE
    assert ros(RMW_IMPLEMENTATION='rmw_zenoh_cpp')['middleware'].state is State.NOTE


def test_memory_of_killed_processes_is_counted() -> None:
    stale = [Path('/dev/shm/fastdds_1'), Path('/dev/shm/fastdds_2')]
    findings = {f.subject: f for f in check_ros({}, WHEELS, stale)}
    assert findings['stale memory'].words.startswith('2 files')


def test_missing_packages_are_named_by_their_distributions() -> None:
    versions = {'numpy': '2.1', 'scipy': ''}
    found = check_python((3, 12), 'python', lambda name, _: versions.get(name))
    assert [(f.subject, f.state) for f in found] == [
        ('Python', State.OK),
        ('packages', State.WRONG),
        ('packages', State.OK),
    ]
    assert 'opencv-python-headless' in found[1].words
    assert 'numpy' not in found[1].words


def test_a_python_that_was_never_tried_is_noted() -> None:
    assert check_python((3, 9), 'python', lambda *_: '1')[0].state is State.NOTE
