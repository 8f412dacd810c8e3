"""One flight in every configuration that is held fixed, and with the optimiser, under shares.

Steps of the processor are flights in a row: the optimiser goes on with all that it has learned,
and the pipeline begins anew, as it does in the fixed configurations. So these need no replays of
their own for steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from mmedge_lab.judging.accuracy_sums import stream_sums
from mmedge_lab.judging.bundle_cases import camera_configuration
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.encoded_flight import EncodedFlight, StoredEncoder, replay_encoded
from mmedge_lab.judging.judged_flight import CachedTruth
from mmedge_lab.judging.steered_replay import OptimiserSteering, Steering
from mmedge_lab.policies.settings import slowed
from mmedge_ros.adaptation.configuration_loop import ConfigurationLoop
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    Box,
    Configuration,
    Detection,
    ModalityConfiguration,
    Track,
    Trail,
    Unit,
    UnitFeatures,
)
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.object_memory import ObjectMemory
from mmedge_ros.geometry.image_motion import Grey
from mmedge_ros.pipeline.fusion_strategy import open_pipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.window_assembler import WindowParameters
from mmedge_ros.report.accuracy_samples import stream_samples
from mmedge_ros.windows.skip_control import SkipParameters

# Slots of all rates and reuses begin with every such time (ns), so flights in a row keep them.
_GRID_NS = 6 * NS_PER_S // 10
# Full use is what was chosen with all of the processor, or less by so much accuracy.
_ABOUT_FULL = 0.01


class Held(NamedTuple):
    """A configuration of the camera; the radar, which costs little, is at its native rate."""

    rate: float
    level: str
    reuse: int

    @property
    def name(self) -> str:
        every = f', 1 of {self.reuse} encoded' if self.reuse > 1 else ''
        return f'{self.rate:g} Hz {self.level}{every}'

    @property
    def configuration(self) -> Configuration:
        return camera_configuration(self.level, self.rate, self.reuse)


class RememberedMotion(ObjectMemory):
    """Follows in each picture what an earlier run followed there, without looking at it again.

    :param known: boxes by the pictures since the encoded one; None where they were lost
    """

    def __init__(self, known: dict[tuple[str | int, ...], Sequence[Box] | None]) -> None:
        super().__init__()
        self._known = known
        self._chain: tuple[str | int, ...] = ()

    def remember(
        self,
        unit: Unit,
        configuration: ModalityConfiguration,
        grey: Grey,
        detections: Sequence[Detection],
    ) -> tuple[Detection, ...]:
        self._chain = (configuration.level, unit.sequence)
        return super().remember(unit, configuration, grey, detections)

    def follow(self, unit: Unit, grey: Grey) -> tuple[Detection, ...] | None:
        self._chain += (unit.sequence,)
        return super().follow(unit, grey)

    def _boxes_in(self, before: Grey, grey: Grey) -> Sequence[Box] | None:
        if self._chain not in self._known:
            self._known[self._chain] = super()._boxes_in(before, grey)
        return self._known[self._chain]


class HeldFlight:
    """An encoded flight that is replayed again and again.

    :param flight: encoded at all levels, with greys
    :param limit: latency limit, s
    """

    def __init__(self, flight: EncodedFlight, bundle: BundleUnderTest, limit: float) -> None:
        assert flight.truth is not None  # it is one that can be judged
        self._flight, self._bundle, self._limit = flight, bundle, limit
        self._truth = CachedTruth(flight.truth)
        self._motion: dict[tuple[str | int, ...], Sequence[Box] | None] = {}
        self._known: dict[tuple[Held, float], dict[str, float]] = {}

    def held(self, held: Held, share: float) -> dict[str, float]:
        """Return the sums of a fixed configuration at a share of the processor, 0..1."""
        if (held, share) not in self._known:
            self._known[held, share] = self._sums(self._replayed(held.configuration, share))
        return self._known[held, share]

    def adapted(self, loop: ConfigurationLoop, shares: Sequence[float]) -> list[dict[str, float]]:
        """Return the sums of each phase that the optimiser flies, one after the other.

        With ``changes`` and, where more of the processor is given back, ``release``: s until its
        choice is worth about what it was in the first phase; the whole phase where it never is.
        """
        length_ns = math.ceil(self._flight.record.duration * NS_PER_S / _GRID_NS) * _GRID_NS
        begin_ns = next(e.available_ns for e in self._flight.events if isinstance(e, Unit))
        phases, full, before = [], math.nan, math.inf
        for number, share in enumerate(shares):
            steering = _InARow(OptimiserSteering(loop), loop, number * length_ns, number == 0)
            record = self._replayed(steering, share)
            used = record.configurations
            sums = self._sums(record)
            sums['changes'] = sum(a.modalities != b.modalities for a, b in pairwise(used))
            if share > before:
                enough = [c for c in used if c.predicted_accuracy >= full - _ABOUT_FULL]
                at_ns = max(enough[0].effective_from_ns - begin_ns, 0) if enough else length_ns
                sums['release'] = at_ns / NS_PER_S
            elif number == 0:
                full = used[-1].predicted_accuracy
            before = share
            phases.append(sums)
        return phases

    def _replayed(self, how: Configuration | Steering, share: float) -> RunRecord:
        parameters = PipelineParameters(
            windows=WindowParameters(deadline=self._limit),
            skipping=SkipParameters(delta=0.0),
        )
        pipeline = open_pipeline(self._bundle.folder, parameters, self._bundle.networks())
        encoders = {m: StoredEncoder(self._flight, m) for m in self._flight.modalities}
        encoders[CAMERA].memory = RememberedMotion(self._motion)
        profile = slowed(self._bundle.profile, share)
        return replay_encoded(self._flight, pipeline, how, profile, encoders=encoders)

    def _sums(self, record: RunRecord) -> dict[str, float]:
        late = sum(decision.latency > self._limit for decision in record.decisions)
        return {
            **stream_sums(stream_samples(record, self._truth)),
            'windows': float(len(record.decisions) + record.dropped),
            'late': float(late + record.dropped),
            'seconds': record.duration,
        }


class _InARow(Steering):
    """Lets an optimiser that flies one recording after the other think that it is one flight."""

    def __init__(
        self, steering: Steering, loop: ConfigurationLoop, offset_ns: int, is_first: bool
    ) -> None:
        self._steering, self._loop = steering, loop
        self._offset_ns, self._begins = offset_ns, not is_first

    def unit_arrived(
        self, modality: str, now_ns: int, stamp_ns: int = 0, available_ns: int = 0
    ) -> None:
        moved = [ns + self._offset_ns if ns else 0 for ns in (stamp_ns, available_ns)]
        self._steering.unit_arrived(modality, now_ns + self._offset_ns, *moved)

    def features_ready(self, features: UnitFeatures, now_ns: int) -> None:
        self._steering.features_ready(features, now_ns + self._offset_ns)

    def decided(self, latency: float, trail: Trail, now_ns: int) -> None:
        self._steering.decided(latency, trail, now_ns + self._offset_ns)

    def tracked(self, tracks: Sequence[Track], now_ns: int) -> None:
        self._steering.tracked(tracks, now_ns + self._offset_ns)

    def update(self, now_ns: int) -> Configuration | None:
        current = self._loop.current
        if self._begins and current is not None:
            self._begins = False
            return replace(current, effective_from_ns=0)
        made = self._steering.update(now_ns + self._offset_ns)
        if made is None:
            return None
        return replace(made, effective_from_ns=made.effective_from_ns - self._offset_ns)
