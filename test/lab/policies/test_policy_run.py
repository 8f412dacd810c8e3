"""Every policy by its name, over a flight in memory and a tiny bundle."""

from __future__ import annotations

from pathlib import Path

import pytest
from gated_bundle import write_gated_bundle
from hand_made_encoded_flight import encoded_flight
from hand_made_schedules import FakeChooser, FakeImputer
from tiny_bundle import write_tiny_bundle

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.encoded_flight import EncodedFlight
from mmedge_lab.policies.pipelined import Pipelined
from mmedge_lab.policies.policy_run import POLICIES, PolicyRun, run_policy
from mmedge_lab.policies.steering import Plugins
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.core.device_profile import DeviceProfile

PROFILE = DeviceProfile(
    'by hand',
    {
        'camera.small.encode': (0.008,) * 6,
        'camera.large.encode': (0.030,) * 6,
        'camera.encode': (0.030,) * 6,
        'radar.encode': (0.001,) * 6,
        'features.transport': (0.001,) * 6,
        'receipt.transport': (0.0002,) * 6,
        'fusion': (0.003,) * 6,
    },
)
PLUGINS = Plugins(
    FakeChooser(lambda _: (10.0, 'large')),
    FakeChooser(lambda _: (30.0, 'small')),
    FakeImputer(lambda _: None),
)


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> BundleUnderTest:
    folder = write_tiny_bundle(tmp_path_factory.mktemp('models') / 'tiny')
    return BundleUnderTest(folder, PROFILE, 'tiny')


@pytest.fixture(scope='module')
def flight() -> EncodedFlight:
    return encoded_flight(lambda when: 2 + (when > 1290.0), 2.0)


def run(name: str, flight: EncodedFlight, bundle: BundleUnderTest, **given: object) -> PolicyRun:
    return run_policy(name, flight, bundle, plugins=PLUGINS, **given)  # type: ignore[arg-type]


def calls(made: PolicyRun) -> int:
    """How many pictures were encoded."""
    return sum(encoding.modality == CAMERA for encoding in made.schedule.encodings)


def latencies(made: PolicyRun) -> list[float]:
    return [decision.latency for decision in made.schedule.decisions]


@pytest.mark.parametrize('alone', [True, False])
@pytest.mark.parametrize('name', [name for name in POLICIES if name != 'ours_without_predictor'])
def test_every_policy_keeps_its_promises_and_gives_a_record(
    name: str, alone: bool, flight: EncodedFlight, bundle: BundleUnderTest
) -> None:
    alone = alone and not isinstance(POLICIES[name].execution, Pipelined)
    made = run(name, flight, bundle, alone=alone, cpu_share=0.64)
    assert made.violations == ()
    assert made.schedule.policy == name
    assert len(made.record.decisions) == len(made.schedule.decisions)
    assert len(made.schedule.decisions) + len(made.schedule.dropped) == 20
    reported = [d.published_ns for d in made.schedule.decisions]
    assert [d.published_ns for d in made.record.decisions] == reported
    assert calls(made) == made.record.units[CAMERA].encoded
    assert any(d.tracks for d in made.record.decisions)


def test_a_smaller_share_of_the_processor_makes_everything_slower(
    flight: EncodedFlight, bundle: BundleUnderTest
) -> None:
    whole, half = (
        run('blocking', flight, bundle, alone=True, cpu_share=share) for share in (1.0, 0.5)
    )
    assert latencies(half)[10] == pytest.approx(2.0 * latencies(whole)[10], rel=1e-6)
    # The work is the same.
    assert half.cpu_seconds == pytest.approx(whole.cpu_seconds)


def test_ours_gives_up_levels_where_the_processor_is_taken_away(
    flight: EncodedFlight, bundle: BundleUnderTest
) -> None:
    def last_level(name: str, share: float) -> str:
        made = run(name, flight, bundle, cpu_share=share, latency_limit=0.06)
        return made.schedule.decisions[-1].configuration.of(CAMERA).level

    assert last_level('ours', 1.0) == 'large'
    assert last_level('ours_without_reuse', 0.3) == 'small'
    assert last_level('ours_without_calibration', 0.3) == 'large'
    assert last_level('pipelined_max', 0.3) == 'large'
    assert last_level('pipelined_min', 1.0) == 'small'


def test_ours_may_follow_pictures_where_the_processor_is_taken_away(
    flight: EncodedFlight, bundle: BundleUnderTest
) -> None:
    def reuses(name: str) -> set[int]:
        made = run(name, flight, bundle, cpu_share=0.5)
        return {d.configuration.of(CAMERA).reuse for d in made.schedule.decisions}

    assert max(reuses('ours')) > 1
    assert reuses('ours_without_reuse') == {1}


def test_skipping_needs_a_gate_and_is_left_out_without_skipping(
    tmp_path: Path, flight: EncodedFlight
) -> None:
    gated = BundleUnderTest(write_gated_bundle(tmp_path / 'gated'), PROFILE, 'gated')
    ours, without = (run(name, flight, gated) for name in ('ours', 'ours_without_skipping'))
    assert any(d.skipped for d in ours.schedule.decisions)
    assert min(latencies(ours)) < 0.0
    assert not any(d.skipped for d in without.schedule.decisions)
    assert calls(ours) < calls(without)
    assert ours.violations == ()


def test_what_cannot_be_run_is_refused_by_name(
    flight: EncodedFlight, bundle: BundleUnderTest
) -> None:
    with pytest.raises(EvaluationError, match='none is alone'):
        run('ours', flight, bundle, alone=True)
    with pytest.raises(EvaluationError, match=r'share of the processor of 0'):
        run('ours', flight, bundle, cpu_share=0.0)
    for limit in (0.0, float('nan'), 60.0):
        with pytest.raises(EvaluationError, match='latency limit'):
            run('ours', flight, bundle, latency_limit=limit)
    for name in ('imputation', 'modality_gating', 'model_selection'):
        with pytest.raises(EvaluationError, match=f'{name} needs a trained plug-in'):
            run_policy(name, flight, bundle)
    with pytest.raises(EvaluationError, match='mmedge lab train fit predictor'):
        run('ours_without_predictor', flight, bundle)
