"""How every node of the package starts, spins and ends."""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node

from mmedge_ros import MmedgeError
from mmedge_ros.core import heartbeat
from mmedge_ros.ros import process_memory
from mmedge_ros.ros.lean_executor import node_executor
from mmedge_ros.ros.participation import made_node, take_part
from mmedge_ros.ros.ros_clock import steady_clock

PARENT_VARIABLE = 'MMEDGE_PARENT_PID'
# A node that could not be made says why and ends with 1: starting it again is no use. One that
# broke down at work ends with this (EX_SOFTWARE) and may be started again.
NOT_MADE = 1
BROKE_DOWN = 70

_PR_SET_PDEATHSIG = 1

# What a user can put right: said in one line, without a traceback. The last two come from nodes
# with arguments of their own.
USER_ERRORS = (
    MmedgeError,
    rclpy_implementation.RCLInvalidROSArgsError,
    rclpy_implementation.UnknownROSArgsError,
)


def run_nodes(makers: Sequence[Callable[[], Node]], args: list[str] | None = None) -> NoReturn:
    """Make the nodes, spin them in one executor until a signal, clean up and end the process.

    Its exit code is 0 when stopped, else `NOT_MADE` or `BROKE_DOWN`.
    """
    _end(_run(makers, args))


def _end(code: int) -> NoReturn:
    """End this process, whatever its threads are doing.

    Python would take itself apart under threads that are in the middle of a call, such as a
    network's or a wait's: now and then, on a busy machine, that ends with a segmentation fault.
    """
    atexit._run_exitfuncs()  # noqa: SLF001  # such as folders that go with the process
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more, or it was closed
            stream.flush()
    os._exit(code)


def _run(makers: Sequence[Callable[[], Node]], args: list[str] | None) -> int:
    # Where a library crashed is then in the node's log.
    faulthandler.enable()
    process_memory.keep_one_heap()
    interrupt = _Interrupt()
    signal.signal(signal.SIGINT, interrupt)
    _end_with_parent()
    broken = threading.Event()
    threading.excepthook = lambda failure: _end_all(failure, broken)
    nodes: list[Node] = []
    try:
        # It may have been blocked while the interpreter started.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        _spin(makers, nodes, args, interrupt)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except USER_ERRORS as err:
        print(f'{_program()}: {" ".join(str(err).split())}', file=sys.stderr)
        return NOT_MADE
    except Exception:  # noqa: BLE001  # the last resort, and it says so in full
        # A shutdown in the middle of a call surfaces as various errors of the middleware.
        if rclpy.ok() and not interrupt.raised:
            traceback.print_exc()
            return BROKE_DOWN if len(nodes) == len(makers) else NOT_MADE
    finally:
        _tear_down(nodes)
    return BROKE_DOWN if broken.is_set() else 0


def program(kind: Callable[[], Node], niceness: int = 0) -> Callable[[], NoReturn]:
    """Return what runs a node as a program.

    :param niceness: how much it gives way to others
    """

    def main() -> NoReturn:
        os.nice(niceness)
        run_nodes([kind])

    return main


def _spin(
    makers: Sequence[Callable[[], Node]],
    nodes: list[Node],
    args: list[str] | None,
    interrupt: _Interrupt,
) -> None:
    take_part(args)
    executor = node_executor()
    for make in makers:
        nodes.append(made_node(make))
        executor.add_node(nodes[-1])
    if heartbeat.VARIABLE in os.environ and nodes:
        nodes[0].create_timer(heartbeat.PERIOD, heartbeat.beat, clock=steady_clock())
    process_memory.settle()
    if nodes:
        period = process_memory.PERIOD
        nodes[0].create_timer(period, process_memory.let_go, clock=steady_clock())
    interrupt.check()
    executor.spin()


def _end_all(failure: threading.ExceptHookArgs, broken: threading.Event) -> None:
    """End the process when one of its threads fails: half a node would be silent for ever."""
    if not rclpy.ok():
        return  # publishing in the middle of a shutdown
    threading.__excepthook__(failure)
    broken.set()
    rclpy.try_shutdown()


def _tear_down(nodes: list[Node]) -> None:
    for node in nodes:
        stop = getattr(node, 'stop', None)
        if stop is not None:
            stop()
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Interrupt:
    """A handler for Ctrl-C that lets us clean up in peace after the first one.

    Threads of a killed parent die one by one, and each may send a signal. And a
    program started with & from a script inherits that Ctrl-C is ignored; with a handler it is
    not.
    """

    def __init__(self) -> None:
        self.raised = False

    def __call__(self, *_: object) -> None:
        if not self.raised:
            self.raised = True
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise again what got lost, as in a callback or while an object was deleted."""
        if self.raised:
            raise KeyboardInterrupt


def _end_with_parent() -> None:
    """End when the process that started the graph is gone and cannot stop us."""
    parent = os.environ.get(PARENT_VARIABLE, '')
    if not parent.isdecimal() or not sys.platform.startswith('linux'):
        return
    if os.getppid() == int(parent):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() == int(parent):
            return
    try:
        watched = os.pidfd_open(int(parent))
    except ProcessLookupError as error:  # it was gone before we asked
        raise SystemExit(NOT_MADE) from error
    except OSError:  # a kernel before 5.3, or a container that forbids it
        return
    # Others are in between, such as a debugger.
    threading.Thread(target=_end_after, args=(watched,), name='parent', daemon=True).start()


def _end_after(watched: int) -> None:
    """Wait for the end of a process, and interrupt this one."""
    waiting = select.poll()
    waiting.register(watched, select.POLLIN)
    waiting.poll()
    os.kill(os.getpid(), signal.SIGINT)


def _program() -> str:
    return Path(sys.argv[0]).stem
