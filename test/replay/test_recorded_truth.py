"""The ground truth of a recording: what is read and refused, and what a replay makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_fixtures import BEGIN_NS, LOG_DELAY_NS, TYPES, header, serialized, write_bag
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from tiny_detector import write_tiny_detector
from truth_fixtures import (
    GROUND_TRUTH,
    TRUTH_TYPE,
    ground_truth,
    point,
    reach,
    recording_with_truth,
    true_object,
    truths,
    vector,
)

from mmedge_ros.core.data_types import Box
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.replay.recorded_truth import read_truth
from mmedge_ros.report.report import write_report

NAN = float('nan')


def read(folder: Path, messages: list[tuple[str, int, Any]]) -> GroundTruth:
    with Bag(write_bag(folder / 'bag', messages=messages)) as bag:
        found = read_truth(bag)
    assert found is not None
    return found


def of_objects(*objects: Any, **fields: Any) -> list[tuple[str, int, Any]]:
    """Three messages, all with these objects."""
    return truths(0.15, lambda number, at: ground_truth(at, list(objects), **fields))


def test_scenes_are_read_with_everything_in_them(tmp_path: Path) -> None:
    other = true_object(
        7,
        label='dog',
        in_picture=False,
        visibility=0.0,
        position=point(3, 4, 0),
        velocity=vector(1, 0, 0),
    )
    found = read(tmp_path, of_objects(true_object(), other))
    assert found.problems == ()
    assert len(found.scenes) == 3
    scene = found.scenes[1]
    assert (scene.stamp_ns, scene.frame_id) == (BEGIN_NS + 50_000_000, 'odom')
    assert scene.scenario == 'meadow_day_near'
    person, dog = scene.objects
    assert (person.id, person.label, person.visibility) == (1, 'person', 1.0)
    assert person.box == Box(8.0, 12.0, 20.0, 36.0)
    assert (dog.id, dog.label, dog.box) == (7, 'dog', None)
    assert dog.position.tolist() == [3.0, 4.0, 0.0]
    assert dog.velocity.tolist() == [1.0, 0.0, 0.0]
    assert scene.ego is not None
    assert scene.ego.pose.translation.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'box': np.array([NAN, 0, 1, 1], np.float32)}, 'no four numbers in a picture'),
        ({'box': np.array([0, 0, 1e9, 1], np.float32)}, 'no four numbers in a picture'),
        ({'box': np.array([20, 12, 8, 36], np.float32)}, 'turned inside out'),
        ({'box': np.array([8, 12, 8, 36], np.float32)}, 'empty'),
        ({'visibility': NAN}, 'has the visibility nan'),
        ({'visibility': 1.5}, 'has the visibility 1.5'),
        ({'position': point(NAN, 0, 0)}, 'position of object 2 is .nan'),
        ({'position': point(0, 1e12, 0)}, 'beyond 1e.06'),
        ({'velocity': vector(0, 0, float('inf'))}, 'velocity of object 2'),
    ],
)
def test_an_object_that_cannot_be_is_left_out_and_told(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    found = read(tmp_path, of_objects(true_object(1), true_object(2, **changes)))
    assert [[o.id for o in scene.objects] for scene in found.scenes] == [[1]] * 3
    (problem,) = found.problems
    assert problem.startswith('ground truth: message 0 of /ground_truth: ')
    assert problem.endswith('object not used (and 2 more like it)')
    assert re.search(words, problem)


def test_whom_the_sensors_could_see_is_read_with_its_scene(tmp_path: Path) -> None:
    scenes = of_objects(true_object(1), true_object(2))
    found = read(tmp_path, [*scenes, reach(BEGIN_NS, [2, 1], [False, True], [0.25, 0.75])])
    assert found.problems == ()
    first, second, _ = found.scenes
    assert [(o.id, o.clear, o.radar) for o in first.objects] == [(1, True, 0.75), (2, False, 0.25)]
    assert [(o.clear, o.radar) for o in second.objects] == [(True, 0.0)] * 2
    assert (first.condition, second.condition) == ('fog', '')
    between = found.frame_at(BEGIN_NS + 20_000_000)
    assert between is not None
    assert between.radar == pytest.approx([0.45, 0.15])
    assert between.clear.tolist() == [True, False]


@pytest.mark.parametrize(
    ('wrong', 'words'),
    [
        (reach(BEGIN_NS, [1], [False, False], [0.5]), '1 ids, 2 of camera and 1 of radar'),
        (reach(BEGIN_NS, [9], [False], [0.5]), 'object 9 is not in its scene'),
        (reach(BEGIN_NS, [1], [False], [NAN]), 'object 1 .* probability of nan'),
        (reach(BEGIN_NS, [1], [False], [1.5]), 'object 1 .* probability of 1.5'),
        (reach(BEGIN_NS + 1, [1], [False], [0.5]), 'belongs to no scene'),
    ],
)
def test_what_no_sensor_could_see_is_not_used_and_told(
    tmp_path: Path, wrong: tuple[str, int, Any], words: str
) -> None:
    found = read(tmp_path, [*of_objects(true_object(1)), wrong])
    assert [(o.clear, o.radar) for s in found.scenes for o in s.objects] == [(True, 0.0)] * 3
    (problem,) = found.problems
    assert re.search(f'message 0 of /ground_truth/reach:? .*{words}.*not used', problem)


def test_an_id_that_occurs_twice_is_used_once(tmp_path: Path) -> None:
    found = read(tmp_path, of_objects(true_object(5), true_object(5, label='dog')))
    assert [o.label for o in found.scenes[0].objects] == ['person']
    assert 'id 5 occurs more than once' in found.problems[0]


def test_stamps_out_of_order_are_sorted_and_told(tmp_path: Path) -> None:
    messages = truths(0.15)
    (_, _, early), (_, log_ns, late) = messages[1:]
    messages[1:] = [(GROUND_TRUTH, log_ns, late), (GROUND_TRUTH, log_ns + 1, early)]
    found = read(tmp_path, messages)
    assert found.stamps_ns == sorted(found.stamps_ns)
    assert len(found.stamps_ns) == 3
    assert 'sorted by stamp' in found.problems[0]


WRONG: dict[str, tuple[Callable[[int], Any], str]] = {
    'stamped long ago': (
        lambda _: ground_truth(5, [true_object()]),
        'is stamped 5 ns but was received at',
    ),
    'stamped like the one before': (
        lambda stamp_ns: ground_truth(
            stamp_ns, [true_object()], header=header(BEGIN_NS, 'radar_link')
        ),
        'has the stamp of an earlier one',
    ),
    'in another frame': (
        lambda stamp_ns: ground_truth(stamp_ns, [true_object()], header=header(stamp_ns, 'map')),
        "is in the frame 'map', those before in 'radar_link'",
    ),
    'a crowd': (
        lambda stamp_ns: ground_truth(stamp_ns, [true_object(n) for n in range(3000)]),
        'holds 3000 objects, more than 1000',
    ),
    **{
        f'cut after {keep} bytes': (
            lambda stamp_ns, keep=keep: (
                TRUTH_TYPE,
                serialized(ground_truth(stamp_ns, [true_object()]))[:keep],
            ),
            'message not used',
        )
        for keep in (0, 3, 20, 60)
    },
}


@pytest.mark.parametrize('wrong', WRONG)
def test_a_message_that_cannot_be_true_is_left_out_and_told(tmp_path: Path, wrong: str) -> None:
    make, words = WRONG[wrong]
    messages = truths(0.15)
    topic, log_ns, _ = messages[1]
    messages[1] = (topic, log_ns, make(BEGIN_NS + 50_000_000))
    found = read(tmp_path, messages)
    assert len(found.scenes) == 2
    assert words in found.problems[0]


@pytest.mark.parametrize(
    'pose',
    [
        {'position': point(NAN, 0, 0)},
        {'orientation': TYPES['geometry_msgs/msg/Quaternion'](x=0.0, y=0.0, z=0.0, w=0.0)},
    ],
)
def test_without_a_pose_of_the_drone_the_objects_are_still_there(
    tmp_path: Path, pose: dict[str, Any]
) -> None:
    known = {
        'position': point(0, 0, 0),
        'orientation': TYPES['geometry_msgs/msg/Quaternion'](x=0.0, y=0.0, z=0.0, w=1.0),
    }
    pose_message = TYPES['geometry_msgs/msg/Pose'](**(known | pose))
    found = read(tmp_path, of_objects(true_object(), pose=pose_message))
    assert found.scenes[0].ego is None
    assert len(found.scenes[0].objects) == 1
    assert 'where the drone was is not known' in found.problems[0]


def test_a_type_of_the_same_name_with_other_fields_is_told(tmp_path: Path) -> None:
    store = get_typestore(Stores.ROS2_KILTED)
    store.register(get_types_from_msg('std_msgs/Header header\nint32 answer', TRUTH_TYPE))
    message = store.types[TRUTH_TYPE](header=header(BEGIN_NS, 'odom'), answer=42)
    with Writer(tmp_path / 'bag', version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection(GROUND_TRUTH, TRUTH_TYPE, typestore=store)
        raw = bytes(store.serialize_cdr(message, TRUTH_TYPE))
        writer.write(connection, BEGIN_NS + LOG_DELAY_NS, raw)
    with Bag(tmp_path / 'bag') as bag:
        found = read_truth(bag)
    assert found is not None
    assert found.scenes == ()
    assert 'has another content than mmedge_ros/msg/GroundTruth' in found.problems[0]


@pytest.fixture(scope='module')
def judged(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The record of a replay of the walker, and its report."""
    folder = tmp_path_factory.mktemp('walk')
    bag = write_bag(folder / 'bag', messages=recording_with_truth(2.0))
    write_tiny_detector(folder / 'tiny.onnx')
    record = replay_offline(OfflineOptions(str(bag), str(folder / 'tiny.onnx')))
    return record, write_report(record, folder / 'out'), folder / 'out'


def test_a_replay_fills_accuracy_and_tracking(judged: Any) -> None:
    _, report, _ = judged
    accuracy, tracking = report['accuracy'], report['tracking']
    assert accuracy['recall'] > 0.8
    assert accuracy['precision'] == 1.0
    assert 0.7 < accuracy['mean_iou'] <= 1.0
    assert 0.5 < accuracy['streaming_mean_iou'] <= accuracy['streaming_mean_iou_at_once'] <= 1.0
    assert accuracy['scenarios'] == ['meadow_day_near']
    # The radar says 5 m as the truth does, the height of the box 3.5 m.
    assert accuracy['range_error_m'] < 1.0
    assert tracking['idf1'] > 0.8
    assert tracking['id_switches'] == 0
    assert tracking['positions']['recall'] > 0.8
