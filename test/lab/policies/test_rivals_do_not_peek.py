"""What is decided by an instant is the same, whatever becomes ready later shows.

A schedule tells when units are used; who makes up features or chooses might still look at what
is in units that are not ready. So what is in these is changed, and no earlier decision may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hand_made_encoded_flight import encoded_flight
from hand_made_rivals import plugins_for
from hand_made_units import at, person
from tiny_bundle import write_tiny_bundle

from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.encoded_flight import EncodedFlight
from mmedge_lab.policies.policy_run import PolicyRun, run_policy
from mmedge_lab.policies.schedule import Encoding
from mmedge_lab.policies.steering import Facts, Plugins
from mmedge_lab.policies.trained_rivals import choices_of
from mmedge_ros.core.data_types import CAMERA, Configuration, UnitFeatures
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.report.report import decision_lines

PROFILE = DeviceProfile(
    'by hand',
    {
        'camera.small.encode': (0.008,) * 6,
        'camera.large.encode': (0.032,) * 6,
        'camera.encode': (0.032,) * 6,
        'radar.encode': (0.001,) * 6,
        'features.transport': (0.001,) * 6,
        'receipt.transport': (0.0002,) * 6,
        'fusion': (0.003,) * 6,
    },
)
RIVALS = ('modality_gating', 'model_selection', 'imputation')
INSTANTS = (at(1105.0), at(1400.0))


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> BundleUnderTest:
    folder = write_tiny_bundle(tmp_path_factory.mktemp('models') / 'tiny')
    return BundleUnderTest(folder, PROFILE, 'not peeking')


def flight() -> EncodedFlight:
    return encoded_flight(lambda when: 1 + (when > 600.0) + (when > 1000.0), 2.0)


def changed_later(run: PolicyRun, of: EncodedFlight, instant_ns: int) -> EncodedFlight:
    """The flight with other people in every picture that is not ready by then."""
    transport_ns = 1_000_000
    ready = {
        e.sequence
        for e in run.schedule.encodings
        if e.modality == CAMERA and e.end_ns + transport_ns <= instant_ns
    }
    others = tuple(person(60.0 + 70.0 * n, 300.0, 40.0, 90.0) for n in range(5))
    features = {
        place: replace(made, detections=others)
        if place[0] == CAMERA and place[2] not in ready and isinstance(made, UnitFeatures)
        else made
        for place, made in of.features.items()
    }
    return replace(of, features=features)


def done_by(run: PolicyRun, instant_ns: int) -> tuple[list[Encoding], str]:
    """What was begun by then, and what was decided from what was ready by then."""
    planned = zip(run.schedule.decisions, run.record.decisions, strict=True)
    lines = decision_lines([d for p, d in planned if p.decide_ns <= instant_ns])
    return [e for e in run.schedule.encodings if e.begin_ns <= instant_ns], lines


def peeks(name: str, bundle: BundleUnderTest, plugins_of: object, alone: bool = False) -> bool:
    """Whether anything is decided by what is not ready; ``plugins_of`` a flight."""
    assert callable(plugins_of)

    def run(of: EncodedFlight) -> PolicyRun:
        made = run_policy(name, of, bundle, alone=alone, plugins=plugins_of(of))
        assert made.violations == ()
        return made

    first = run(flight())
    for instant_ns in INSTANTS:
        other = run(changed_later(first, flight(), instant_ns))
        assert done_by(first, instant_ns)[1]
        assert decision_lines(first.record.decisions) != decision_lines(other.record.decisions)
        if done_by(first, instant_ns) != done_by(other, instant_ns):
            return True
    return False


@pytest.mark.parametrize('alone', [True, False])
@pytest.mark.parametrize('name', RIVALS)
def test_no_rival_knows_what_is_not_ready(name: str, alone: bool, bundle: BundleUnderTest) -> None:
    assert not peeks(name, bundle, lambda _: plugins_for(bundle.folder, -3.0), alone)


class PeekingImputer:
    """Makes up what the encoder will find."""

    def __init__(self, of: EncodedFlight) -> None:
        self._flight = of

    def impute(
        self, missing: UnitFeatures, ready: Mapping[str, Sequence[UnitFeatures]]
    ) -> UnitFeatures | None:
        result = self._flight.features[missing.modality, '', missing.sequence]  # type: ignore[index]
        assert isinstance(result, UnitFeatures)
        return replace(result, stamp_ns=missing.stamp_ns)


class PeekingChooser:
    """Chooses by the newest picture there is, ready or not."""

    def __init__(self, of: EncodedFlight, choices: Sequence[Configuration]) -> None:
        self._flight, self._choices = of, choices

    def configuration(self, facts: Facts) -> Configuration:
        pictures = [
            made
            for place, made in self._flight.features.items()
            if place[0] == CAMERA and isinstance(made, UnitFeatures)
        ]
        known = [made for made in pictures if made.available_ns <= facts.now_ns]
        people = len(known[-1].detections) if known else 0
        return self._choices[people > 3]


def test_rivals_that_peek_are_found_out(bundle: BundleUnderTest) -> None:
    choices = choices_of(bundle.folder)

    def imputing(of: EncodedFlight) -> Plugins:
        return Plugins(imputation=PeekingImputer(of))

    def selecting(of: EncodedFlight) -> Plugins:
        return Plugins(model_selection=PeekingChooser(of, choices.by_level))

    def gating(of: EncodedFlight) -> Plugins:
        both = (choices.by_level[-1], choices.resting)
        return Plugins(modality_gating=PeekingChooser(of, both))

    assert peeks('imputation', bundle, imputing)
    assert peeks('model_selection', bundle, selecting)
    assert peeks('modality_gating', bundle, gating)
