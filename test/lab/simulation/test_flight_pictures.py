"""A flight's pictures, whoever takes them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hand_made_flight import decoded, scene, sensors
from hand_made_streams import impossible_world, world_that_kills

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.camera import CameraSimulator
from mmedge_lab.simulation.flight import (
    picture_records,
    pictures_of_workers,
    record_flight,
    simulate_flight,
)
from mmedge_lab.simulation.flight_bag import CAMERA, CAMERA_INFO, GROUND_TRUTH
from mmedge_lab.simulation.flight_messages import FlightMessages

SECONDS = 0.5


def test_one_worker_and_two_give_identical_fields(tmp_path: Path) -> None:
    flights = [tmp_path / str(workers) for workers in (1, 2)]
    for workers, flight in enumerate(flights, 1):
        simulate_flight(flight, 'yard_lamps_near', 3, SECONDS, workers=workers)
    alone, together = map(decoded, flights)
    assert {message[0] for message in alone} >= {CAMERA, GROUND_TRUTH}
    assert together == alone


def test_workers_take_turns_also_where_the_pictures_do_not_come_out_even() -> None:
    world = scene(SECONDS)
    alone = list(picture_records(world, CameraSimulator(world), FlightMessages()))
    assert len(alone) % 2
    assert [record.topic for record in alone[0]] == [CAMERA, CAMERA_INFO, GROUND_TRUTH]
    with pictures_of_workers(partial(scene, SECONDS), 2) as pictures:
        assert list(pictures) == alone


@pytest.mark.parametrize(
    ('make_world', 'words'),
    [(impossible_world, 'there is no such place'), (world_that_kills, 'code -9')],
)
def test_a_worker_that_fails_is_one_sentence_and_leaves_no_flight(
    make_world, words: str, tmp_path: Path
) -> None:
    world = scene(SECONDS)
    with pytest.raises(SimulationError, match=f'not all taken: .*{words}'):
        record_flight(
            *(tmp_path / 'flight', world, sensors(world)),
            pictures=pictures_of_workers(make_world, 2),
        )
    assert list(tmp_path.iterdir()) == []
