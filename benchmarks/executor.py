"""What an executor costs for what a fusion node receives: rclpy's own and that of the nodes.

    PYTHONPATH=. .venv/bin/python benchmarks/executor.py

One process publishes odometry at 100 Hz and small messages at 60 Hz; two listen to the same
messages at the same time, one with each executor, the leaner one with deferred odometry. Prints
the processor time of each listener per message and the ratio.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.connection import Connection

import rclpy
from bench_timing import print_ratios
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from std_msgs.msg import Header

from mmedge_ros.ros.lean_executor import LeanExecutor
from mmedge_ros.ros.messages import qos
from mmedge_ros.ros.waited_entities import defer

SECONDS = 10.0
RATES = {Odometry: 100.0, Header: 60.0}


def publish() -> None:
    """Publish until killed."""
    rclpy.init()
    node = rclpy.create_node('publisher')
    for kind, rate in RATES.items():
        publisher = node.create_publisher(kind, kind.__name__.lower(), qos.SENSOR)
        node.create_timer(1.0 / rate, lambda p=publisher, k=kind: p.publish(k()))
    executor = LeanExecutor()
    executor.add_node(node)
    executor.spin()


def listen(is_lean: bool, results: Connection) -> None:
    """Listen for a while, and send the microseconds of processor time per message."""
    rclpy.init()
    node = rclpy.create_node(f'listener_{os.getpid()}')
    count = 0

    def receive(_: object) -> None:
        nonlocal count
        count += 1

    odometry = node.create_subscription(Odometry, 'odometry', receive, qos.FREQUENT_SENSOR)
    node.create_subscription(Header, 'header', receive, qos.SENSOR)
    if is_lean:
        defer(odometry)
    executor = LeanExecutor() if is_lean else SingleThreadedExecutor()
    executor.add_node(node)
    while count < sum(RATES.values()):
        executor.spin_once(timeout_sec=1.0)
    before, spent, end = count, time.process_time(), time.monotonic() + SECONDS
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=1.0)
    results.send(1e6 * (time.process_time() - spent) / (count - before))


def main() -> None:
    """Measure both at the same time."""
    context = multiprocessing.get_context('spawn')
    source = context.Process(target=publish)
    source.start()
    connections = []
    for is_lean in (False, True):
        ours, theirs = context.Pipe(duplex=False)
        context.Process(target=listen, args=(is_lean, theirs)).start()
        connections.append(ours)
    rclpy_us, lean_us = (connection.recv() for connection in connections)
    print_ratios({'rclpy, per message': rclpy_us, 'lean, per message': lean_us}, 'us')
    source.kill()


if __name__ == '__main__':
    main()
