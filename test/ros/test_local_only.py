"""Nothing of a graph is open beyond this machine, unless the network is asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest
from live_graph import Bystander, children_of, python_environment, wait_until

from mmedge_ros.ros.graph.middleware_profile import profile_environment

TABLES = ('udp', 'udp6', 'tcp', 'tcp6', 'udplite', 'udplite6', 'raw', 'raw6')
# As many as one graph and whoever looks at it may be.
PARTICIPANTS = 20

Address = IPv4Address | IPv6Address


def bound_addresses(pid: int) -> list[Address]:
    """Local addresses of all internet sockets of a process, of whatever protocol."""
    folder = Path(f'/proc/{pid}')
    links = set()
    for descriptor in (folder / 'fd').iterdir():
        with suppress(FileNotFoundError):  # closed in this moment
            links.add(str(descriptor.readlink()))
    found = []
    for table in TABLES:
        path = folder / 'net' / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            words = line.split()
            if f'socket:[{words[9]}]' in links:
                found.append(_address(words[1].partition(':')[0]))
    return found


def _address(text: str) -> Address:
    """Read the kernel's spelling: 32 bit words in hexadecimal, each in the machine's order."""
    words = (bytes.fromhex(text[i : i + 8]) for i in range(0, len(text), 8))
    packed = b''.join(word[::-1] if sys.byteorder == 'little' else word for word in words)
    return ip_address(packed)


def open_addresses(pid: int) -> list[Address]:
    """Those that other machines can reach."""
    return [address for address in bound_addresses(pid) if not address.is_loopback]


def a_new_environment(**variables: str) -> dict[str, str]:
    """That of a user who has set nothing but these, in the domain of the tests."""
    given = python_environment()
    for name in profile_environment({}):
        given.pop(name, None)
    return {**given, **variables}


Start = Callable[..., 'subprocess.Popen[bytes]']


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a module of the package with arguments and the variables of an environment."""
    with ExitStack() as running:

        def begin(module: str, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                [sys.executable, '-m', f'mmedge_ros.{module}', *arguments],
                env=a_new_environment(ROS_LOG_DIR=str(tmp_path), **variables),
                stderr=subprocess.DEVNULL,
            )
            running.callback(process.wait, 30.0)
            running.callback(process.terminate)
            return process

        yield begin


def test_no_socket_of_a_whole_graph_is_open_to_other_machines(
    start: Start, little_bag: Path, detector: Path, bystander: Bystander, tmp_path: Path
) -> None:
    command = start(
        *('commands.main', 'up', '--loop', '--bag', str(little_bag), '--detector', str(detector)),
        *('--logs', str(tmp_path)),
    )
    bystander.wait_for_decisions(3)
    pids = [command.pid, *children_of(command.pid)]
    assert len(pids) == 6
    for pid in pids:
        assert bound_addresses(pid), 'a node without sockets would find nobody'
        assert open_addresses(pid) == []


@pytest.mark.parametrize('how_far', ['LOCALHOST', 'SUBNET'])
def test_a_node_started_by_hand_stays_here_whatever_ros_is_told(
    start: Start, bystander: Bystander, how_far: str
) -> None:
    node = start('ros.nodes.visualizer', ROS_AUTOMATIC_DISCOVERY_RANGE=how_far)
    bystander.wait_until(lambda: 'visualizer' in bystander.node.get_node_names())
    assert bound_addresses(node.pid)
    assert open_addresses(node.pid) == []


def test_all_of_a_big_graph_find_one_another() -> None:
    with ExitStack() as stack:
        nodes = [stack.enter_context(Bystander(f'node_{n}')).node for n in range(PARTICIPANTS)]
        wait_until(None, lambda: all(len(n.get_node_names()) >= PARTICIPANTS for n in nodes))
