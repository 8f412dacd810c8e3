"""What the optimiser's node looks at in messages."""

from __future__ import annotations

import array
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mmedge_ros.adaptation.fixed_configuration import FixedConfiguration
from mmedge_ros.adaptation.optimizer_setup import (
    ConfigurationOptimizerParameters,
    optimizer_setup,
)
from mmedge_ros.adaptation.scene_indicators import SceneIndicators
from mmedge_ros.core.data_types import CAMERA, ModalityConfiguration
from mmedge_ros.core.parameter import build
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.ros.messages.conversions import appearance_of_message, seen_tracks
from mmedge_ros.ros.nodes.configuration_optimizer import look_at_tracks, look_at_unit

MODEL = Path(__file__).resolve().parents[2] / 'models' / 'flight_people'


def unit(modality: str, **known: object) -> SimpleNamespace:
    nothing = array.array('f')
    defaults = {'followed': False, 'embedding': nothing, 'returns': nothing}
    return SimpleNamespace(**{'modality': modality, **defaults, **known})


@pytest.mark.parametrize('sent', [[], [0.5], [0.1, 0.2, math.nan], [0.1, 0.2, math.inf, 0.3]])
def test_what_is_no_appearance_is_unknown(sent: list[float]) -> None:
    appearance = appearance_of_message(unit('camera', appearance=array.array('f', sent)))
    assert all(math.isnan(value) for value in appearance)


def test_units_are_looked_at_unless_their_returns_do_not_fit_together() -> None:
    scene = SceneIndicators()
    look_at_unit(scene, unit('camera', appearance=array.array('f', [0.5, 0.25, 0.125])))
    returns = np.zeros((3, 5), np.float32)
    look_at_unit(scene, unit('radar', returns=array.array('f', returns.tobytes())))
    assert (scene.now.brightness, scene.now.returns) == (0.5, 3.0)
    look_at_unit(scene, unit('radar', returns=array.array('f', [1.0, 2.0, 3.0])))
    assert scene.now.returns == 3.0


def track(height: float) -> SimpleNamespace:
    """A track with a box so high, which moves by half its height a second."""
    return SimpleNamespace(
        score=0.5,
        box_valid=True,
        box=np.array([0.0, 0.0, 10.0, height], np.float32),
        box_velocity=np.array([0.5 * height, 0.0], np.float32),
    )


def test_tracks_are_looked_at_unless_one_cannot_be_true() -> None:
    scene = SceneIndicators()
    hidden = track(10.0)
    hidden.box_valid = False
    look_at_tracks(scene, SimpleNamespace(tracks=[track(40.0), hidden, track(20.0)]))
    now = scene.now
    assert (now.tracks, now.smallest, now.track_height) == (2.0, 20.0, 30.0)
    assert (now.score, now.motion) == (0.5, 0.5)
    look_at_tracks(scene, SimpleNamespace(tracks=[track(40.0), track(math.nan)]))
    assert scene.now.tracks == 2.0
    look_at_tracks(scene, SimpleNamespace(tracks=[]))
    assert scene.now.tracks == 0.0


def test_rates_that_a_predictor_was_not_trained_for_are_flown_by_the_table() -> None:
    usual = optimizer_setup(ConfigurationOptimizerParameters(detector=str(MODEL)))
    other = optimizer_setup(
        ConfigurationOptimizerParameters(detector=str(MODEL), camera_rates=(2.0, 10.0))
    )
    assert other.source == 'the table of the bundle'
    assert other.loop.scene is None
    is_learnt = usual.loop.scene is not None
    assert is_learnt == usual.source.endswith('corrected by what is seen')
    assert any('the table alone' in note for note in other.notes) == is_learnt


def test_without_optimising_all_stays_as_set_up_within_bounds() -> None:
    setup = optimizer_setup(build(ConfigurationOptimizerParameters, {'optimise': False}))
    assert isinstance(setup.loop, FixedConfiguration)
    assert setup.notes == ()
    assert setup.loop.update(10**9, 1.0) is None
    setup.loop.system_state(SystemState(charge=0.5), 1.0)
    made = setup.loop.update(2 * 10**9, 2.0)
    assert made is not None
    # The level in use is medium, which saving allows.
    assert (made.of(CAMERA).level, made.of(CAMERA).reuse) == ('', 4)


def test_a_modality_that_a_package_adds_is_bounded_as_well() -> None:
    values = {'optimise': False, 'modalities': ['camera', 'lidar']}
    setup = optimizer_setup(build(ConfigurationOptimizerParameters, values))
    setup.loop.system_state(SystemState(charge=0.5), 1.0)
    made = setup.loop.update(10**9, 1.0)
    assert made is not None
    assert made.of('lidar') == ModalityConfiguration('lidar', device='')


def test_a_track_that_the_camera_saw_in_the_window_needs_no_burst() -> None:
    def track(number: int, box_valid: bool, *seen_by: str) -> SimpleNamespace:
        return SimpleNamespace(id=number, box_valid=box_valid, seen_by=list(seen_by))

    tracks = [
        track(1, True, 'camera'),
        track(2, False, 'camera', 'radar'),
        track(3, False, 'radar'),
    ]
    seen = seen_tracks(SimpleNamespace(tracks=tracks))
    assert seen == [(1, True), (2, True), (3, False)]
