"""Ways to see with less power: the package's policy at several charges, and its rivals.

Rivals: the rule as printed in Nanomind, which interpolates rates with alpha; a cheaper level at a
lower rate below one threshold; and doing nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mmedge_lab.judging.encoded_flight import EncodedFlight, replay_encoded
from mmedge_lab.judging.steered_replay import Steering
from mmedge_ros.adaptation.configuration_loop import ConfigurationLoopParameters
from mmedge_ros.adaptation.fixed_configuration import FixedConfiguration
from mmedge_ros.adaptation.power_policy import STANDING_BY, PowerParameters
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Configuration,
    ModalityConfiguration,
    SkipDecision,
    Track,
)
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline

SMALL, MEDIUM = 'small', 'medium'
# Of the rule as printed: rates at alpha 1 and 0, Hz.
_PRINTED = {CAMERA: (30.0, 2.0), RADAR: (20.0, 2.0)}
ALPHAS = (0.8, 0.6, 0.4, 0.2, 0.0)
NOTHING, LOW_RATE, CRITICAL = 'nothing', 'small 10 Hz', 'critical'


@dataclass(frozen=True)
class PowerRow:
    """A way to fly: by the policy at a ``charge``, or in one configuration."""

    name: str
    words: str
    level: str = MEDIUM
    charge: float | None = None
    rates: Mapping[str, float] | None = None


def charge_at(alpha: float) -> float:
    """Return the charge at which alpha has a value, 0..1."""
    p = PowerParameters()
    return p.reserve + (1.0 - p.reserve) * (p.low + alpha * (p.high - p.low))


def ours(alpha: float) -> str:
    """Return the name of the row of the policy at an alpha."""
    return f'alpha {alpha:g}'


def printed(alpha: float) -> str:
    """Return the name of the row of the printed rule at an alpha."""
    return f'printed {alpha:g}'


def power_rows() -> tuple[PowerRow, ...]:
    """Return the rows of the bench, doing nothing first."""
    rows = [PowerRow(NOTHING, 'every picture encoded')]
    rows += [
        # A little above, where alpha is 0 and the state is not CRITICAL yet.
        PowerRow(ours(a), f'the policy at alpha {a:g}', charge=charge_at(a) + 1e-6)
        for a in ALPHAS
    ]
    rows += [
        PowerRow(
            printed(a),
            f'rates interpolated to alpha {a:g}, as printed',
            rates={m: low + a * (high - low) for m, (high, low) in _PRINTED.items()},
        )
        for a in ALPHAS
    ]
    rows.append(PowerRow(LOW_RATE, 'level small at 10 Hz', SMALL, rates={CAMERA: 10.0}))
    rows.append(PowerRow(CRITICAL, 'standing by, in bursts', charge=charge_at(0.0) - 0.1))
    return tuple(rows)


class BatterySteering(Steering):
    """The policy of the package with a battery of one charge."""

    def __init__(self, charge: float, level: str) -> None:
        parameters = ConfigurationLoopParameters(power=STANDING_BY)
        self._loop = FixedConfiguration(
            {CAMERA: (level,), RADAR: ('',)}, {CAMERA: level}, parameters
        )
        self._state = SystemState(charge=charge)
        self._level = level
        self._begun = False

    def unit_arrived(
        self,
        modality: str,
        now_ns: int,
        stamp_ns: int = 0,  # noqa: ARG002
        available_ns: int = 0,  # noqa: ARG002
    ) -> None:
        self._loop.unit_arrived(modality, now_ns / NS_PER_S)

    def resting(self, skip: SkipDecision, now_ns: int) -> None:
        self._loop.resting(skip.modality, max(skip.skip_until_ns, now_ns) / NS_PER_S)

    def tracked(self, tracks: Sequence[Track], now_ns: int) -> None:
        seen = [(t.id, t.box is not None or CAMERA in t.seen_by) for t in tracks]
        self._loop.bounds.tracked(seen, now_ns / NS_PER_S)

    def update(self, now_ns: int) -> Configuration | None:
        now = now_ns / NS_PER_S
        self._loop.system_state(self._state, now)
        made = self._loop.update(now_ns, now)
        if made is None:
            first, self._begun = not self._begun, True
            camera = ModalityConfiguration(CAMERA, level=self._level)
            return Configuration(modalities=(camera,)) if first else None
        self._begun = True
        parts = tuple(replace(part, level=part.level or self._level) for part in made.modalities)
        return replace(made, modalities=parts)


def replay_power_row(
    flight: EncodedFlight, row: PowerRow, pipeline: PerceptionPipeline, profile: DeviceProfile
) -> RunRecord:
    """Replay an encoded flight as a row says, in virtual time; return the record of the run."""
    if row.charge is not None:
        steering = BatterySteering(row.charge, row.level)
        return replay_encoded(flight, pipeline, steering, profile)
    rates = row.rates or {}
    parts = (
        ModalityConfiguration(CAMERA, rates.get(CAMERA, 0.0), row.level),
        ModalityConfiguration(RADAR, rates.get(RADAR, 0.0)),
    )
    return replay_encoded(flight, pipeline, Configuration(1, 0, parts), profile)
