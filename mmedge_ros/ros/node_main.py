"""How every node of the package starts, spins and ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from mmedge_ros.encoding.detector import EncodingError
from mmedge_ros.fusion.errors import FusionError
from mmedge_ros.parameter import ParameterError
from mmedge_ros.replay.errors import ReplayError

PARENT_VARIABLE = 'MMEDGE_PARENT_PID'
_PR_SET_PDEATHSIG = 1

# What a user can put right: said in one line, without a traceback.
USER_ERRORS = (ParameterError, EncodingError, FusionError, ReplayError)


def run_nodes(makers: Sequence[Callable[[], Node]], args: list[str] | None = None) -> int:
    """Make the nodes, spin them in one executor until told to stop, and clean up.

    Returns the exit code: 0 when stopped, 1 when a node could not be made.
    """
    _end_with_parent()
    rclpy.init(args=args)
    nodes: list[Node] = []
    try:
        executor = SingleThreadedExecutor()
        for make in makers:
            nodes.append(make())
            executor.add_node(nodes[-1])
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except USER_ERRORS as err:
        print(f'{_program()}: {err}', file=sys.stderr)
        return 1
    except Exception:
        # A shutdown in the middle of a call surfaces as various errors of the middleware.
        if rclpy.ok():
            raise
    finally:
        _tear_down(nodes)
    return 0


def _tear_down(nodes: list[Node]) -> None:
    for node in nodes:
        stop = getattr(node, 'stop', None)
        if stop is not None:
            stop()
    try:
        for node in nodes:
            node.destroy_node()
        rclpy.try_shutdown()
    except KeyboardInterrupt:
        pass  # told twice


def _end_with_parent() -> None:
    """End when the process that started the graph is killed and cannot stop us."""
    parent = os.environ.get(PARENT_VARIABLE, '')
    if not parent.isdigit() or not sys.platform.startswith('linux'):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
    if os.getppid() != int(parent):  # it was gone before we asked
        raise SystemExit(1)


def _program() -> str:
    return Path(sys.argv[0]).stem
