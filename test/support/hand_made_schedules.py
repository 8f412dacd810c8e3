"""Arrivals, service times and choosers made by hand, for tests of scheduling policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hand_made_units import BEGIN_NS, MS, at

from mmedge_lab.policies.schedule import Arrival
from mmedge_lab.policies.settings import PolicySettings, ServiceTimes
from mmedge_lab.policies.steering import Facts
from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    Configuration,
    ModalityConfiguration,
    UnitFeatures,
)
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.pipeline.unit_intake import acquisition_trail

PERIODS = {CAMERA: round(33.3 * MS), RADAR: 50 * MS}
LARGE = Configuration(
    1, 0, (ModalityConfiguration(CAMERA, 30.0, 'large'), ModalityConfiguration(RADAR, 20.0, ''))
)


def arrivals(seconds: float = 1.0, first: float = 3.0) -> tuple[Arrival, ...]:
    """Pictures and scans at their rates, each measured 5 ms before it is available."""
    found = [
        Arrival(
            modality,
            sequence,
            at(first - 5.0) + sequence * period_ns,
            at(first) + sequence * period_ns,
        )
        for modality, period_ns in PERIODS.items()
        for sequence in range(int(seconds * 1e9 / period_ns))
    ]
    return tuple(sorted(found, key=lambda a: (a.available_ns, a.modality)))


def constant_profile(
    camera: float = 10.0,
    radar: float = 1.0,
    transport: float = 1.0,
    decision: float = 3.0,
    **levels: float,
) -> DeviceProfile:
    """All times in ms; ``levels`` are those of the camera's levels."""
    stages = {
        'camera.encode': camera,
        'radar.encode': radar,
        'features.transport': transport,
        'receipt.transport': 0.1,
        'fusion': decision,
        **{f'camera.{level}.encode': value for level, value in levels.items()},
    }
    return DeviceProfile('by hand', {name: (1e-3 * ms,) * 6 for name, ms in stages.items()})


def settings(profile: DeviceProfile | None = None, **given: object) -> PolicySettings:
    times = ServiceTimes(profile or constant_profile())
    return PolicySettings(times, LARGE, no_content, **given)  # type: ignore[arg-type]


def no_content(unit: Arrival, part: ModalityConfiguration) -> UnitFeatures:
    """Return features without content: enough where only times matter."""
    return UnitFeatures(
        unit.modality,
        unit.sequence,
        unit.stamp_ns,
        unit.available_ns,
        '',
        acquisition_trail(unit.stamp_ns, unit.stamp_ns, unit.available_ns),
        part.rate,
        part.level,
    )


def end_of(number: int) -> int:
    """End of the window so many strides of 0.1 s after the beginning."""
    return BEGIN_NS + number * 100 * MS


class FakeChooser:
    """Chooses what ``choose`` says (camera rate, camera level), and keeps what it was told."""

    def __init__(self, choose: Callable[[Facts], tuple[float, str]]) -> None:
        self.asked: list[Facts] = []
        self._choose = choose

    def configuration(self, facts: Facts) -> Configuration:
        self.asked.append(facts)
        rate, level = self._choose(facts)
        return Configuration(
            9,
            0,
            (ModalityConfiguration(CAMERA, rate, level), ModalityConfiguration(RADAR, 20.0, '')),
        )


class FakeImputer:
    """Gives what ``make`` makes of a missing unit, and keeps what it was asked for."""

    def __init__(self, make: Callable[[UnitFeatures], UnitFeatures | None]) -> None:
        self.asked: list[tuple[UnitFeatures, dict[str, list[UnitFeatures]]]] = []
        self._make = make

    def impute(
        self, missing: UnitFeatures, ready: dict[str, Sequence[UnitFeatures]]
    ) -> UnitFeatures | None:
        self.asked.append((missing, {m: list(units) for m, units in ready.items()}))
        return self._make(missing)
