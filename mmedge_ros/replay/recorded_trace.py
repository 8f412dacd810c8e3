"""Traces from files: the system state of a recorded or simulated flight, or tegrastats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.untrusted_files import shown
from mmedge_ros.monitoring.battery import battery_reading
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.monitoring.tegrastats import read_tegrastats
from mmedge_ros.monitoring.trace import Trace
from mmedge_ros.replay import BagError, ReplayError
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.wire_formats import SYSTEM_STATE, state_from_message

BATTERY_TYPE = 'sensor_msgs/msg/BatteryState'

_BAGS = ('.mcap', '.db3')
# What a flight says about itself, best first.
_READERS: dict[str, Callable[[Any], SystemState]] = {
    SYSTEM_STATE: state_from_message,
    BATTERY_TYPE: lambda message: battery_reading(message).state,
}


def read_trace_file(path: str | Path) -> Trace:
    """Read a trace: a rosbag2 folder, a single .mcap or .db3 file, or text of tegrastats.

    :raises ReplayError: if there is no system state in it
    :raises MonitoringError: if a text holds no line of tegrastats
    """
    place = Path(path)
    try:
        is_bag = place.is_dir() or place.suffix in _BAGS
    except (OSError, ValueError) as error:
        raise ReplayError(f'{shown(str(path))} cannot be read: {error}') from error
    if not is_bag:
        return read_tegrastats(place)
    with Bag(place) as bag:
        return _trace_of(bag)


def _trace_of(bag: Bag) -> Trace:
    """Read the system state of a recording, or its battery's where there is no more.

    Times are those of arrival, from the first message of the bag on.

    :raises ReplayError: if it has neither
    """
    recorded = {t.msgtype: t.name for t in reversed(bag.topics) if t.count}
    kind = next((kind for kind in _READERS if kind in recorded), None)
    if kind is None:
        raise ReplayError(
            f'{bag.path} has no topic of {" or ".join(_READERS)}: it cannot be played as a trace'
        )
    times: list[float] = []
    states: list[SystemState] = []
    refused = 0
    for message in bag.messages([recorded[kind]]):
        try:
            state = _READERS[kind](bag.deserialize(message))
        # A recording brings its own definition of the type, which may be another one.
        except (BagError, AttributeError, TypeError, ValueError, OverflowError):
            refused += 1
            continue
        times.append((message.log_ns - bag.begin_ns) / NS_PER_S)
        states.append(state)
    if not states:
        raise ReplayError(f'{bag.path}: no message of {recorded[kind]} can be used')
    words = f'{refused} messages of {recorded[kind]} cannot be used'
    problems = (*bag.problems, *((words,) if refused else ()))
    return Trace(tuple(times), tuple(states), bag.begin_ns, problems)
