"""Objects of the last encoded picture are followed in the next ones."""

from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, Box, Detection, ModalityConfiguration, Unit
from mmedge_ros.encoding.object_memory import ObjectMemory, ReuseGrid
from mmedge_ros.geometry.image_motion import Grey

START_NS = 1_700_000_000_000_000_000
# Pictures of 320 x 240 px are followed at half their size.
SIZE = (160, 120)
HALF = ModalityConfiguration(CAMERA, reuse=2)
SEEN = (
    Detection(Box(60.0, 40.0, 90.0, 120.0), 0.9, 'person', 12.0, 1.0),
    Detection(Box(200.0, 100.0, 212.0, 130.0), 0.6, 'person'),
)


def unit(stamp_ns: int) -> Unit:
    return Unit(CAMERA, 1, stamp_ns, stamp_ns, 'camera_optical', None, ())


def texture(seed: int = 0) -> Grey:
    rng = np.random.default_rng(seed)
    layers = [
        cv2.resize(rng.uniform(0, 255, (SIZE[1] // n, SIZE[0] // n)), SIZE) for n in (2, 4, 8)
    ]
    return np.mean(layers, axis=0).astype(np.uint8)


def shifted(picture: Grey, by: int) -> Grey:
    return np.roll(picture, by, axis=1)


def stamps(rate: float, seconds: float = 4.0, jitter: float = 0.0) -> list[int]:
    """Return stamps of a camera that is off each period by up to ``jitter`` of it."""
    rng = np.random.default_rng(1)
    count = round(seconds * rate)
    times = (np.arange(count) + rng.uniform(-jitter, jitter, count)) / rate
    return [START_NS + round(1e9 * time) for time in times]


def taken(grid: ReuseGrid, times: Iterable[int], reuse: int, rate: float = 0.0) -> list[int]:
    return [time for time in times if grid.takes(time, rate, reuse)]


@pytest.mark.parametrize('native', [30.0, 29.97, 25.0, 24.0, 20.0])
@pytest.mark.parametrize('jitter', [0.0, 0.2])
@pytest.mark.parametrize('reuse', [2, 3, 6])
def test_about_every_nth_picture_is_encoded(native: float, jitter: float, reuse: int) -> None:
    times = stamps(native, jitter=jitter)
    rest = [time for time in taken(ReuseGrid(), times, reuse) if time > times[20]]
    nominal = {29.97: 30.0, 24.0: 25.0}.get(native, native)
    assert len(rest) == pytest.approx((len(times) - 21) * nominal / native / reuse, abs=1.5)


def test_who_joins_a_stream_later_encodes_the_same_pictures() -> None:
    times = stamps(30.0, seconds=6.0, jitter=0.2)
    from_begin, joined = taken(ReuseGrid(), times, 3), taken(ReuseGrid(), times[50:], 3)
    known = times[65]
    assert [t for t in from_begin if t > known] == [t for t in joined if t > known]


def test_where_slots_end_with_windows_the_first_picture_of_each_is_encoded() -> None:
    times = [time + 12_000_000 for time in stamps(30.0)]
    encoded = taken(ReuseGrid(), times, 3)[6:]
    assert len(encoded) > 30
    assert all(time % 100_000_000 < 34_000_000 for time in encoded)


def test_a_lost_picture_does_not_move_the_grid() -> None:
    times = stamps(30.0)
    whole = taken(ReuseGrid(), times, 3)
    lost = next(time for time in whole if time > times[40])
    rest = taken(ReuseGrid(), [time for time in times if time != lost], 3)
    assert [t for t in whole if t > lost] == [t for t in rest if t > lost + 70_000_000]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-(2**40), 2**62), max_size=30), st.integers(0, 10))
def test_any_stamps_are_decided(times: list[int], reuse: int) -> None:
    assert set(taken(ReuseGrid(), times, reuse)) <= set(times)


def remembering(picture: Grey, seen: tuple[Detection, ...] = SEEN) -> ObjectMemory:
    memory = ObjectMemory()
    memory.remember(unit(START_NS), HALF, picture, seen)
    return memory


def test_remembered_objects_move_with_the_picture_and_keep_everything_else() -> None:
    picture = texture()
    memory = remembering(picture)
    first = memory.follow(unit(START_NS + 1), shifted(picture, 3))
    second = memory.follow(unit(START_NS + 1), shifted(picture, 6))
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(
        [d.box for d in second], [np.add(d.box, (12, 0, 12, 0)) for d in SEEN], atol=0.5
    )
    assert [(d.score, d.label) for d in second] == [(d.score, d.label) for d in SEEN]
    assert second[0].distance == 12.0
    assert [d.item for d in second] == [d.item for d in first]


def test_an_object_lost_alone_moves_as_the_others() -> None:
    picture = texture()
    picture[20:100, 70:140] = 80
    gone = shifted(picture, 4)
    memory = remembering(picture, (*SEEN[:1], *SEEN[:1], SEEN[1]))
    moved = memory.follow(unit(START_NS + 1), gone)
    assert moved is not None
    np.testing.assert_allclose(moved[2].box, np.add(SEEN[1].box, (8, 0, 8, 0)), atol=0.6)


@pytest.mark.parametrize('picture', [texture(1), np.full(SIZE[::-1], 7, np.uint8)])
def test_when_most_points_are_lost_the_picture_must_be_encoded(picture: Grey) -> None:
    assert remembering(texture()).follow(unit(START_NS + 1), picture) is None


def warm() -> tuple[ObjectMemory, int]:
    """Return a memory that knows the rate, and the stamp of a picture it would follow."""
    memory = ObjectMemory()
    for time in stamps(30.0):
        due = memory.due(unit(time), HALF)
        if due:
            memory.remember(unit(time), HALF, texture(), SEEN)
    following = time + 33_333_333
    return memory, following if due else following + 33_333_333


@pytest.mark.parametrize(
    'changed',
    [
        ModalityConfiguration(CAMERA, level='large', reuse=2),
        ModalityConfiguration(CAMERA, rate=20.0, reuse=2),
        ModalityConfiguration(CAMERA, reuse=3),
        ModalityConfiguration(CAMERA, reuse=1),
    ],
)
def test_another_configuration_begins_with_an_encoded_picture(
    changed: ModalityConfiguration,
) -> None:
    memory, following = warm()
    assert memory.due(unit(following), changed)


def test_what_was_encoded_long_ago_is_followed_no_further() -> None:
    memory, slow = ObjectMemory(), ModalityConfiguration(CAMERA, rate=10.0, reuse=10)
    for time in stamps(10.0):
        if memory.due(unit(time), slow):
            memory.remember(unit(time), slow, texture(), SEEN)
            encoded_ns = time
        else:
            memory.follow(unit(time), texture())
            assert time - encoded_ns <= 350_000_000


@pytest.mark.parametrize('gap_ns', [-50_000_000, 400_000_000])
def test_after_a_gap_or_a_step_back_the_picture_is_encoded(gap_ns: int) -> None:
    memory, following = warm()
    assert memory.due(unit(following + gap_ns), HALF)


def test_a_rate_below_the_native_one_makes_slots_longer() -> None:
    times = stamps(30.0)
    encoded = taken(ReuseGrid(), times, 2, rate=10.0)
    assert len([t for t in encoded if t > times[60]]) == pytest.approx(2 * 5, abs=1)


def test_a_picture_without_a_stamp_is_encoded() -> None:
    grid = ReuseGrid()
    taken(grid, stamps(30.0), 6)
    assert grid.takes(0, 0.0, 6)


def test_items_have_numbers_of_their_own() -> None:
    memory = ObjectMemory()
    one = memory.remember(unit(START_NS), HALF, texture(), SEEN)
    other = memory.remember(unit(START_NS + 1), HALF, texture(), SEEN)
    items = [d.item for d in (*one, *other)]
    assert len(set(items)) == 4
    assert 0 not in items


def test_a_picture_between_two_that_are_encoded_is_followed() -> None:
    memory, following = warm()
    assert not memory.due(unit(following), HALF)
