"""A flight in memory, in fixed configurations and with the optimiser, at shares of a processor."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_made_encoded_flight import encoded_flight
from hand_made_truth import film, true_person
from tiny_bundle import write_tiny_bundle

from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.policies.policy_run import optimiser_loop
from mmedge_lab.policies.settings import STATED
from mmedge_lab.rivals.mmedge.held_flight import Held, HeldFlight
from mmedge_ros.core.data_types import Box


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> BundleUnderTest:
    folder = write_tiny_bundle(tmp_path_factory.mktemp('models') / 'tiny')
    return BundleUnderTest(folder, STATED, 'tiny')


def flown(bundle: BundleUnderTest) -> HeldFlight:
    flight = encoded_flight(lambda _: 2, 2.0)
    truth = film(lambda _: [true_person(box=Box(100.0, 165.0, 150.0, 315.0))], 2000)
    record = replace(flight.record, truth=truth, duration=2.0)
    return HeldFlight(replace(flight, record=record), bundle, 0.05)


def test_less_of_the_processor_shows_people_later(bundle: BundleUnderTest) -> None:
    flight, held = flown(bundle), Held(30.0, 'small', 1)
    whole, half, third = (flight.held(held, share) for share in (1.0, 0.5, 0.3))
    assert (
        whole['streamed']
        > whole['stream_overlap']
        > half['stream_overlap']
        > third['stream_overlap']
        > 0.0
    )
    assert whole['late'] <= half['late'] <= third['late']


def test_a_phase_of_the_optimiser_begins_with_what_it_learned_in_the_one_before(
    bundle: BundleUnderTest,
) -> None:
    phases = flown(bundle).adapted(optimiser_loop(bundle), [1.0, 0.2, 1.0])
    assert [phase['windows'] > 0.0 for phase in phases] == [True] * 3
    assert 'release' not in phases[0]
    assert 'release' not in phases[1]
    assert 0.0 <= phases[2]['release'] <= 2.4
    assert phases[1]['changes'] >= 1
