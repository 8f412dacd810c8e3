"""Nothing of a graph is open beyond this machine, unless the network is asked for.

That no socket of a whole `mmedge up` is open is seen to in test_shutdown.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from live_graph import Bystander, new_environment, open_addresses, wait_until

REACHES = ('LOCALHOST', 'SUBNET')
# As many as one graph and whoever looks at it may be.
PARTICIPANTS = 20


def test_nodes_started_by_hand_stay_here_whatever_ros_is_told(
    bystander: Bystander, tmp_path: Path
) -> None:
    with ExitStack() as running:
        pids = []
        for reach in REACHES:
            module = ('-m', 'mmedge_ros.ros.nodes.visualizer')
            process = subprocess.Popen(
                [sys.executable, *module, '--ros-args', '-r', f'__node:={reach}'],
                env={
                    **new_environment(),
                    'ROS_LOG_DIR': str(tmp_path),
                    'ROS_AUTOMATIC_DISCOVERY_RANGE': reach,
                },
                stderr=subprocess.DEVNULL,
            )
            running.callback(process.wait, 30.0)
            running.callback(process.terminate)
            pids.append(process.pid)
        bystander.wait_until(lambda: {*REACHES} <= {*bystander.node.get_node_names()})
        for pid in pids:
            assert open_addresses(pid) == []


def test_all_of_a_big_graph_find_one_another() -> None:
    with ExitStack() as stack:
        nodes = [stack.enter_context(Bystander(f'node_{n}')).node for n in range(PARTICIPANTS)]
        wait_until(None, lambda: all(len(n.get_node_names()) >= PARTICIPANTS for n in nodes))
