"""What a recording brings a policy: units when they are available, windows on the grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mmedge_ros.data_types import Configuration, Unit
from mmedge_ros.lab.evaluation.encoded_flight import EncodedFlight
from mmedge_ros.lab.policies.schedule import Arrival
from mmedge_ros.pipeline.unit_intake import plausible_stamp
from mmedge_ros.sensing.capture_control import Admission, CaptureControl


def arrivals_of(flight: EncodedFlight) -> tuple[Arrival, ...]:
    """List the units of a flight in the order in which they are available.

    A stamp that cannot be true is replaced by the time of arrival, as encoders do.
    """
    found = [
        Arrival(
            event.modality,
            event.sequence,
            event.stamp_ns
            if plausible_stamp(event.stamp_ns, event.available_ns)
            else event.available_ns,
            event.available_ns,
        )
        for event in flight.events
        if isinstance(event, Unit) and event.modality in flight.modalities
    ]
    return tuple(sorted(found, key=lambda a: a.available_ns))


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
    """Which units pass at the rates of a configuration; remembers the answers."""

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
                if controls[unit.modality].admit(unit.stamp_ns) is Admission.TAKE
            )
        return self._known[key]
