"""The configuration of a drone that does not optimise: as set up, within caps and power state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mmedge_ros.adaptation.caps_policy import Caps
from mmedge_ros.adaptation.configuration_loop import ConfigurationLoopParameters, LoopCounts
from mmedge_ros.adaptation.configuration_message import ConfigurationMessages
from mmedge_ros.adaptation.configuration_space import ModalityOptions, highest_level
from mmedge_ros.adaptation.placement import Placement
from mmedge_ros.adaptation.sensing_bounds import SensingBounds
from mmedge_ros.core.data_types import (
    CAMERA,
    Configuration,
    ModalityConfiguration,
)
from mmedge_ros.monitoring.system_state import SystemState

_AS_SET_UP = 'as set up'


class FixedConfiguration:
    """Returns a configuration when bounds begin to hold, change or end; none before.

    :param levels: of each modality, from the cheapest; ('',) where it has none of its own
    :param defaults: the level of each that is used where none is named
    :param placement: where levels run; None leaves them where they are set up
    """

    def __init__(
        self,
        levels: Mapping[str, Sequence[str]],
        defaults: Mapping[str, str],
        parameters: ConfigurationLoopParameters | None = None,
        placement: Placement | None = None,
    ) -> None:
        p = parameters or ConfigurationLoopParameters()
        self.bounds = SensingBounds(p.caps, p.power, placement)
        self.counts = LoopCounts()
        self.reasons: tuple[str, ...] = ()
        self._options = [ModalityOptions(m, (), tuple(of)) for m, of in levels.items()]
        self._defaults = defaults
        self._messages = ConfigurationMessages(p.lead, p.window)

    @property
    def current(self) -> Configuration | None:
        """The configuration that was issued last; None while all is as set up."""
        return self._messages.current

    def system_state(self, state: SystemState, now: float) -> None:
        """Take the state of battery and computer at ``now`` (s, monotonic)."""
        self.counts.states += 1
        self.bounds.take(state, now)

    def unit_arrived(self, modality: str, now: float, stamp_ns: int = 0, *_times_ns: int) -> None:
        """Note that a unit reached its encoder, encoded or not."""
        self.bounds.unit_arrived(modality, now, stamp_ns)

    def resting(self, modality: str, until: float) -> None:
        """Note that a modality is not sensed until then (s, monotonic): a skip lease."""
        self.bounds.resting(modality, until)

    def update(self, now_ns: int, now: float) -> Configuration | None:
        """Return a new configuration, or None while the present one stays.

        :param now_ns: on the ROS clock
        """
        bounds = self.bounds.at(now)
        self.reasons = bounds.reasons
        parts = tuple(self._part(o, (bounds.caps, bounds.power)) for o in self._options)
        wanted = Configuration(modalities=parts, reason='; '.join(bounds.reasons) or _AS_SET_UP)
        if self.current is None and not bounds.reasons and not bounds.devices:
            return None
        made = self._messages.issued(wanted, bounds, now_ns)
        if made is not None:
            self.counts.changes += 1
            self.bounds.configured(made, now)
        return made

    def _part(self, options: ModalityOptions, caps: Sequence[Caps]) -> ModalityConfiguration:
        modality, levels = options.modality, options.levels
        rate = min((c.rates[modality] for c in caps if modality in c.rates), default=0.0)
        default = self._defaults.get(modality, '')
        place = min(highest_level(options, c.levels.get(modality, '')) for c in caps)
        own = levels.index(default) if default in levels else len(levels) - 1
        level = levels[place] if place < own else ''
        reuse = max(c.reuse.get(modality, 1) for c in caps) if modality == CAMERA else 1
        return ModalityConfiguration(modality, rate, level, '', reuse)
