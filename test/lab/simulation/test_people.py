from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.simulation.people import draw_clothing, draw_person
from mmedge_lab.simulation.skeleton import STANCES, Gait, Joints, standing, walking

HEIGHT = 1.75
GAIT = Gait(pace=1.4, stride=1.4)


def lengths(joints: Joints) -> dict[str, np.ndarray]:
    """Lengths of the left limbs over the cycle."""
    bones = {
        'thigh': (joints.hips, joints.knees),
        'shin': (joints.knees, joints.ankles),
        'upper_arm': (joints.shoulders, joints.elbows),
        'forearm': (joints.elbows, joints.wrists),
    }
    return {name: np.linalg.norm(a[0] - b[0], axis=1) for name, (a, b) in bones.items()}


def test_bones_keep_their_length_over_a_cycle() -> None:
    for joints in (walking(HEIGHT, GAIT), *(standing(HEIGHT, stance) for stance in STANCES)):
        for name, values in lengths(joints).items():
            assert np.ptp(values) < 0.03, name


def test_left_and_right_alternate() -> None:
    joints = walking(HEIGHT, GAIT)
    half = len(joints.pelvis) // 2
    left, right = (joint[:, 0] for joint in joints.balls)
    np.testing.assert_allclose(np.roll(left, half), right, atol=1e-9)
    arms = [wrist[:, 0] - joints.chest[:, 0] for wrist in joints.wrists]
    # The arm swings against the leg of its side.
    assert np.corrcoef(left, arms[0])[0, 1] < -0.6


def test_a_knee_never_bends_forward_beyond_straight() -> None:
    joints = walking(HEIGHT, GAIT)
    for hip, knee, ankle in zip(joints.hips, joints.knees, joints.ankles, strict=True):
        middle = 0.5 * (hip + ankle)
        assert (knee[:, 0] - middle[:, 0] > -0.02).all()


@pytest.mark.parametrize('stance', STANCES)
def test_hands_stay_outside_the_ground_and_within_reach(stance: object) -> None:
    joints = standing(HEIGHT, stance)
    for wrist, shoulder in zip(joints.wrists, joints.shoulders, strict=True):
        assert (np.linalg.norm(wrist - shoulder, axis=1) <= 0.34 * HEIGHT).all()
        assert (wrist[:, 2] > 0.4 * HEIGHT).all()


def test_people_are_as_tall_as_people_are_and_children_shorter() -> None:
    random = np.random.default_rng(0)
    tall = [
        (s.resting[0, :, 2] + s.radii)[: s.first[2]].max()
        for s in (draw_person(random) for _ in range(60))
    ]
    small = [
        (s.resting[0, :, 2] + s.radii)[: s.first[2]].max()
        for s in (draw_person(random, child=True) for _ in range(20))
    ]
    assert 1.5 < min(tall) < max(tall) < 2.03
    assert 1.65 < np.mean(tall) < 1.82
    assert 1.05 < min(small) < max(small) < 1.5


def test_people_have_14_to_19_parts_with_a_head_and_two_of_each_limb() -> None:
    random = np.random.default_rng(0)
    for _ in range(40):
        names = draw_person(random).names
        assert 14 <= len(names) <= 21
        assert 'head' in names
        for limb in ('upper_arm', 'forearm', 'hand', 'thigh', 'shin', 'shoe'):
            assert {f'left_{limb}', f'right_{limb}'} <= set(names)


def test_no_two_people_dress_alike() -> None:
    random = np.random.default_rng(0)
    dressed = [draw_clothing(random) for _ in range(100)]
    assert len({(c.top, c.bottom, c.hair) for c in dressed}) == 100
    brightness = [np.mean(c.top) for c in dressed]
    assert min(brightness) < 45
    assert max(brightness) > 200
    assert sum(c.backpack is not None for c in dressed) in range(8, 35)
    assert {c.headwear for c in dressed} == {'hair', 'long_hair', 'cap'}
