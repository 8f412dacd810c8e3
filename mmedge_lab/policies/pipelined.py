"""The pipeline itself as a policy: what it really did in an offline replay, as a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.encoded_flight import EncodedFlight, replay_encoded
from mmedge_lab.policies.causality import Promise
from mmedge_lab.policies.schedule import Encoding, PlannedDecision, Schedule, Use
from mmedge_lab.policies.settings import PolicySettings
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.window_assembler import ClosedWindow
from mmedge_ros.windows.feature_fusion import FusionNetworks
from mmedge_ros.windows.window_bank import Steps


class Pipelined(NamedTuple):
    """Encodes on arrival, each unit once; a window closes as soon as its units are encoded."""

    name: str

    @property
    def promises(self) -> frozenset[Promise]:
        return frozenset((Promise.ONCE,))

    def replay(
        self, flight: EncodedFlight, pipeline: PerceptionPipeline, settings: PolicySettings
    ) -> tuple[Schedule, RunRecord]:
        """Replay a flight with the steering of the settings; return schedule and run record.

        :param pipeline: a new one, whose windows are those of the settings
        :raises ReplayError: as `replay_encoded`
        """
        steering = settings.make_steering() if settings.make_steering else settings.configuration
        closed: list[ClosedWindow] = []
        pipeline.assembler.on_close = closed.append
        record = replay_encoded(flight, pipeline, steering, settings.times.profile)
        decisions = _decisions(record, closed, settings)
        ends = [decision.window_end_ns for decision in decisions]
        grid = range(ends[0], ends[-1], settings.stride_ns) if ends else ()
        dropped = tuple(sorted(set(grid) - set(ends)))
        return Schedule(self.name, decisions, _encodings(record), dropped), record


def _encodings(record: RunRecord) -> tuple[Encoding, ...]:
    """Return every run of an encoder, by its beginning; following is one."""
    encodings = []
    for unit in record.features:
        work = 'follow' if unit.followed else 'encode'
        stage = next(stage for stage in reversed(unit.trail) if stage.stage == work)
        encodings.append(
            Encoding(unit.modality, unit.sequence, unit.level, stage.begin_ns, stage.end_ns)
        )
    return tuple(sorted(encodings, key=lambda e: (e.begin_ns, e.end_ns)))


def _decisions(
    record: RunRecord, closed: Sequence[ClosedWindow], settings: PolicySettings
) -> tuple[PlannedDecision, ...]:
    """Return the decisions, in the order of their windows."""
    known = {c.id: c for c in (settings.configuration, *record.configurations)}
    windows = {window.end_ns: window for window in closed}
    decisions: list[PlannedDecision] = []
    free_ns, current = 0, known[min(known)]
    for decision in record.decisions:
        window = windows[decision.window_end_ns]
        newest = max((unit.configuration_id for unit in window.members), default=None)
        current = known.get(newest, current) if newest is not None else current
        decisions.append(
            PlannedDecision(
                decision.window_end_ns,
                max(window.closed_ns, free_ns),
                decision.published_ns,
                tuple(Use(u.modality, u.sequence, u.level) for u in window.members),
                current,
                decision.skipped,
            )
        )
        free_ns = decision.published_ns
    return tuple(decisions)


class _NewestSteps:
    """Steps that forget the units before; windows are stepped in the order of stamps."""

    def __init__(self, steps: Steps[Any]) -> None:
        self._steps = steps

    def begin(self, end_ns: int) -> Any:
        return self._steps.begin(end_ns)

    def unit(self, grid: NDArray[np.floating]) -> Any:
        return self._steps.unit(grid)

    def step(self, state: Any, unit: Any, stamp_ns: int) -> Any:
        return self._steps.step(self._steps.begin(state.end_ns), unit, stamp_ns)


class NewestAlone:
    """Fusion networks that see of each window the newest unit of each sensor: no aggregation."""

    def __init__(self, networks: FusionNetworks) -> None:
        self._networks = networks
        self.aggregators = {m: _NewestSteps(steps) for m, steps in networks.aggregators.items()}

    def fuse(self, states: Mapping[str, Any]) -> NDArray[np.float32]:
        return self._networks.fuse(states)
