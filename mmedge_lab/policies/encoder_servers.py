"""Units and windows of a recording, and how they wait for encoders and decisions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mmedge_lab.policies.schedule import Arrival, Encoding
from mmedge_lab.policies.settings import ServiceTimes
from mmedge_ros.core.data_types import Configuration
from mmedge_ros.sensing.capture_control import Admission, CaptureControl

# Windows, or units of a modality, that may wait: what waits longer is of no use at its turn.
CAPACITY = 2


@dataclass(frozen=True)
class Windows:
    """Windows over arrivals: all ends on the grid that a unit belongs to, the last one whole."""

    arrivals: Sequence[Arrival]
    window_ns: int
    stride_ns: int

    @property
    def ends(self) -> range:
        """Ends of windows, in order: from the first unit's to the first after the last unit."""
        if not self.arrivals:
            return range(0)
        first_ns = -(-self.arrivals[0].available_ns // self.stride_ns) * self.stride_ns
        last_ns = -(-self.arrivals[-1].available_ns // self.stride_ns) * self.stride_ns
        return range(first_ns, last_ns + 1, self.stride_ns)

    def units(self, end_ns: int, among: Iterable[Arrival]) -> list[Arrival]:
        """Return those that belong to the window that ends then."""
        begin_ns = end_ns - self.window_ns
        return [unit for unit in among if begin_ns < unit.available_ns <= end_ns]


@dataclass
class Thinning:
    """Which units pass at the rates of a configuration; results are cached."""

    arrivals: Sequence[Arrival]
    periods_ns: Mapping[str, int]
    _known: dict[tuple[tuple[str, float], ...], tuple[Arrival, ...]] = field(default_factory=dict)

    def passing(self, configuration: Configuration) -> tuple[Arrival, ...]:
        """Return the units that pass at the configuration's rates, in order."""
        modalities = sorted({unit.modality for unit in self.arrivals})
        key = tuple((m, configuration.of(m).rate) for m in modalities)
        if key not in self._known:
            controls = {m: CaptureControl(m, self.periods_ns.get(m)) for m in modalities}
            for control in controls.values():
                control.schedule.add(Configuration(0, 0, configuration.modalities))
            self._known[key] = tuple(
                unit
                for unit in self.arrivals
                if controls[unit.modality].admit(unit.stamp_ns, unit.available_ns)
                is Admission.TAKE
            )
        return self._known[key]


class WindowQueue:
    """Windows whose ends have passed, waiting; of more than fit the oldest is dropped.

    ``dropped`` are their ends.
    """

    def __init__(self, ends_ns: Sequence[int]) -> None:
        self.dropped: list[int] = []
        self._coming = deque(ends_ns)
        self._waiting: deque[int] = deque()

    def next(self, free_ns: int) -> int | None:
        """Return the end of the window to be served next, None after the last.

        :param free_ns: from when on it can be served
        """
        if not self._waiting and self._coming:
            self._waiting.append(self._coming.popleft())
        while self._coming and self._coming[0] <= free_ns:
            self._waiting.append(self._coming.popleft())
            if len(self._waiting) > CAPACITY:
                self.dropped.append(self._waiting.popleft())
        return self._waiting.popleft() if self._waiting else None


def encode(
    units: Iterable[Arrival],
    configuration: Configuration,
    times: ServiceTimes,
    begin_ns: int = 0,
    window_end_ns: int | None = None,
    capacity: int | None = None,
) -> list[Encoding]:
    """Encode units as they come, each modality by its own server from ``begin_ns`` on.

    :param units: by the time they are available
    :param capacity: how many may wait; of more the oldest is never encoded. None: all may
    """
    by_modality: dict[str, deque[Arrival]] = {}
    for unit in units:
        by_modality.setdefault(unit.modality, deque()).append(unit)
    encodings = []
    for modality, coming in by_modality.items():
        level, free_ns = configuration.of(modality).level, begin_ns
        waiting: deque[Arrival] = deque(maxlen=capacity)
        while waiting or coming:
            if not waiting:
                waiting.append(coming.popleft())
            begun_ns = max(free_ns, waiting[0].available_ns)
            while coming and coming[0].available_ns <= free_ns:
                waiting.append(coming.popleft())
            unit = waiting.popleft()
            free_ns = begun_ns + times.encode_ns(modality, level, unit.sequence)
            encodings.append(Encoding(*unit.unit, level, begun_ns, free_ns, window_end_ns))
    return encodings
