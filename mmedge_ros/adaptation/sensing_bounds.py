"""What may be chosen at present: by battery, computer and whoever waits for decisions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from mmedge_ros.adaptation.caps_policy import (
    NO_CAPS,
    Caps,
    CapsParameters,
    CapsPolicy,
    ScanShare,
)
from mmedge_ros.adaptation.latency_budget import LatencyBudget
from mmedge_ros.adaptation.placement import Placement
from mmedge_ros.adaptation.power_policy import (
    PowerMode,
    PowerParameters,
    PowerPolicy,
    power_caps,
)
from mmedge_ros.adaptation.standby import Standby
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    STANDBY,
    Configuration,
    ModalityConfiguration,
)
from mmedge_ros.encoding.bricks import brick_name
from mmedge_ros.monitoring.system_state import SystemState


class SensingLimits(NamedTuple):
    """What may be chosen: ``caps`` by the computer and ``power`` by the battery, both hold.

    ``latency`` is the limit (s). ``stands_by``: the camera rests; ``devices``: where levels run,
    by the names of their bricks, as far as there is a choice.
    """

    caps: Caps = NO_CAPS
    power: Caps = NO_CAPS
    stands_by: bool = False
    devices: Mapping[str, str] = MappingProxyType({})
    latency: float = math.inf
    shorter: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why not more may be chosen, and why the limit is shorter than usual."""
        return (*self.caps.reasons, *self.power.reasons, *self.shorter)

    def held(self, parts: Iterable[ModalityConfiguration]) -> tuple[ModalityConfiguration, ...]:
        """Return parts of a configuration where they run, with a camera that rests, if it does."""
        return tuple(self._held(part) for part in parts)

    def _held(self, part: ModalityConfiguration) -> ModalityConfiguration:
        device = self.devices.get(brick_name(part.modality, part.level), part.device)
        rests = self.stands_by and part.modality == CAMERA
        return replace(part, device=device, rate=STANDBY if rests else part.rate)


class SensingBounds:
    """Follows the state of the system; instants are seconds on the monotonic clock.

    :param placement: where levels run; None leaves them where they are set up
    :param latency: the usual limit, s
    """

    def __init__(
        self,
        caps: CapsParameters,
        power: PowerParameters,
        placement: Placement | None = None,
        latency: float = math.inf,
    ) -> None:
        self._latency = latency
        self.budget = LatencyBudget()
        self.placement = placement or Placement((), {})
        self.power = PowerPolicy(power, caps.cells)
        self.standby = Standby()
        self._policy = CapsPolicy(caps)
        self._scans = ScanShare()
        self._mode = PowerMode.UNCONSTRAINED

    def take(self, state: SystemState, now: float) -> None:
        """Take the state of battery and computer."""
        self._policy.take(state, now)
        self.power.take(state, now)

    def unit_arrived(self, modality: str, now: float, stamp_ns: int = 0) -> None:
        """Note a unit, encoded or not.

        :param stamp_ns: when it was measured; 0 if unknown
        """
        if modality == RADAR:
            self._scans.arrived(now, stamp_ns / NS_PER_S if stamp_ns else now)

    def resting(self, modality: str, until: float) -> None:
        """Note that a modality is not sensed until then: a skip lease."""
        if modality == RADAR:
            self._scans.excuse(until)

    def configured(self, configuration: Configuration, now: float) -> None:
        """Note the rate at which scans are to be expected."""
        self._scans.configure(configuration.of(RADAR).rate, now)

    def tracked(self, tracks: Iterable[tuple[int, bool]], now: float) -> None:
        """Note confirmed tracks: their ids, and whether the camera sees or saw them."""
        if self._mode is PowerMode.CRITICAL:
            self.standby.seen(tracks, now)

    def wake(self, now: float) -> None:
        """Wake a camera that stands by, because its pictures are asked for."""
        if self._mode is PowerMode.CRITICAL:
            self.standby.asked(now)

    def at(self, now: float) -> SensingLimits:
        """Return what may be chosen now."""
        state = self.power.update(now)
        is_critical = state.mode is PowerMode.CRITICAL
        if is_critical and self._mode is not PowerMode.CRITICAL:
            self.standby.reset(now)
        self._mode = state.mode
        stands_by = is_critical and not self.standby.is_awake(now)
        caps = self._policy.caps(now, self._scans.share(now))
        devices = self.placement.devices(state.mode is not PowerMode.UNCONSTRAINED, now)
        latency, shorter = self.budget.limit(self._latency, now)
        return SensingLimits(caps, power_caps(state), stands_by, devices, latency, shorter)
