"""Configurations that change in flight, offline as live."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hand_made_encoded_flight import PERIODS, encoded_flight
from hand_made_schedules import constant_profile
from hand_made_units import MS, at

from mmedge_lab.judging.encoded_flight import replay_encoded
from mmedge_lab.judging.steered_replay import OptimiserSteering, stage_seconds
from mmedge_ros.adaptation.accuracy_predictor import assumed_accuracy
from mmedge_ros.adaptation.configuration_loop import (
    ConfigurationLoop,
    ConfigurationLoopParameters,
)
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.adaptation.unit_time_profile import StageTime, UnitTimeProfile
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Configuration,
    ModalityConfiguration,
    SkipDecision,
    Track,
    Trail,
    UnitFeatures,
)
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.pipeline.fusion_strategy import gated_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.windows.audits import AuditParameters
from mmedge_ros.windows.early_decision import Gating
from mmedge_ros.windows.skip_control import SkipControl, SkipParameters


def configuration(number: int, from_ns: int, level: str, rate: float = 30.0) -> Configuration:
    return Configuration(
        number,
        from_ns,
        (ModalityConfiguration(CAMERA, rate, level), ModalityConfiguration(RADAR, 20.0)),
    )


class Script:
    """Steers by a list, and writes down what it is told."""

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self._left = list(configurations)
        self.told: list[tuple[str, int]] = []
        self.encode_seconds: list[float] = []
        self.tracks: list[tuple[int, ...]] = []

    def unit_arrived(
        self, modality: str, now_ns: int, stamp_ns: int = 0, available_ns: int = 0
    ) -> None:
        assert 0 < stamp_ns <= available_ns <= now_ns
        self.told.append((f'{modality} arrived', now_ns))

    def features_ready(self, features: UnitFeatures, now_ns: int) -> None:
        self.told.append((f'{features.modality} ready', now_ns))
        self.encode_seconds.append(stage_seconds(features.trail, 'encode'))

    def resting(self, skip: SkipDecision, now_ns: int) -> None:
        self.told.append((f'{skip.modality} rests', now_ns))

    def decided(self, latency: float, trail: Trail, now_ns: int) -> None:
        self.told.append(('decided', now_ns))

    def tracked(self, tracks: Sequence[Track], now_ns: int) -> None:
        assert self.told[-1] == ('decided', now_ns)
        self.tracks.append(tuple(track.id for track in tracks))

    def update(self, now_ns: int) -> Configuration | None:
        self.told.append(('asked', now_ns))
        if self._left and self._left[0].effective_from_ns <= now_ns + 20 * MS:
            return self._left.pop(0)
        return None


def flown(
    script: Script, camera: float = 10.0, pipeline: PerceptionPipeline | None = None
) -> RunRecord:
    flight = encoded_flight(lambda _: 2)
    profile = constant_profile(camera)
    return replay_encoded(flight, pipeline or PerceptionPipeline(), script, profile)


def test_units_are_encoded_as_the_configuration_of_their_stamp_says() -> None:
    changes_ns = at(720.0)
    script = Script([configuration(1, 0, 'small'), configuration(2, changes_ns, 'large', 10.0)])
    record = flown(script)
    pictures = [unit for unit in record.features if unit.modality == CAMERA]
    for unit in pictures:
        assert (unit.level, unit.configuration_id) == (
            ('large', 2) if unit.stamp_ns >= changes_ns else ('small', 1)
        )
    later = [unit for unit in pictures if unit.stamp_ns >= changes_ns]
    assert len(later) == pytest.approx(13, abs=1)
    assert [made.id for made in record.configurations] == [1, 2]
    assert record.decisions[-1].configuration_ids == (2,)


def test_whoever_steers_is_told_all_in_the_order_it_happens() -> None:
    script = Script([configuration(1, 0, 'small')])
    record = flown(script, camera=12.0)
    instants = [now_ns for what, now_ns in script.told]
    assert instants == sorted(instants)
    counts = {what: sum(w == what for w, _ in script.told) for what, _ in script.told}
    assert counts['camera arrived'] == counts['camera ready'] == 60
    assert counts['decided'] >= len(record.decisions) == 20
    published = [now_ns for what, now_ns in script.told if what == 'decided']
    assert published[:20] == [d.published_ns for d in record.decisions]
    assert counts['asked'] == pytest.approx(20, abs=2)
    # Before the first unit comes somebody has chosen.
    assert script.told[0] == ('asked', at(3.0) - 3 * NS_PER_S)
    assert max(script.encode_seconds) == pytest.approx(0.012)


def test_it_hears_of_rests() -> None:
    class Yes:
        def confidence(self, question: object, end_ns: int) -> float:
            return 1.0

    rules = SkipParameters(audits=AuditParameters(share=0.0))
    gating = Gating(Yes(), SkipControl(rules, 0.5, periods_ns=PERIODS))
    script = Script([configuration(1, 0, 'small')])
    record = flown(script, pipeline=gated_pipeline(gating))
    assert any(what == 'camera rests' for what, _ in script.told)
    assert record.units[CAMERA].skipped > 5


@pytest.mark.parametrize(('learns', 'level'), [(True, 'small'), (False, 'large')])
def test_the_optimiser_gives_up_a_level_that_turns_out_too_slow(learns: bool, level: str) -> None:
    space = ConfigurationSpace(
        [
            ModalityOptions(CAMERA, (10.0, 30.0), ('small', 'large')),
            ModalityOptions(RADAR, (20.0,), ('',)),
        ]
    )
    quick = StageTime(0.001, 0.05)
    times = UnitTimeProfile(
        {
            (CAMERA, 'small'): StageTime(0.004, 0.05),
            (CAMERA, 'large'): StageTime(0.012, 0.05),
            (RADAR, ''): quick,
        },
        quick,
        quick,
    )
    adaptation = ConfigurationLoop(
        space, times, assumed_accuracy(space), ConfigurationLoopParameters(0.03)
    )
    record = replay_encoded(
        encoded_flight(lambda _: 2, 3.0),
        PerceptionPipeline(),
        OptimiserSteering(adaptation, learns),
        constant_profile(camera=120.0, small=8.0, large=120.0),
    )
    assert record.configurations[0].of(CAMERA).level == 'large'
    assert record.configurations[-1].of(CAMERA).level == level
    if learns:
        assert record.decisions[-1].latency < 0.03
