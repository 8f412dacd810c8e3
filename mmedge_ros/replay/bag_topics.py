"""Which topics of a recording are the sensors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mmedge_ros.encoding.encoder_registry import added_kinds
from mmedge_ros.replay import BagError
from mmedge_ros.replay.bag_storage import TopicInfo

IMAGE = 'sensor_msgs/msg/Image'
COMPRESSED_IMAGE = 'sensor_msgs/msg/CompressedImage'
CAMERA_INFO = 'sensor_msgs/msg/CameraInfo'
POINT_CLOUD = 'sensor_msgs/msg/PointCloud2'
ODOMETRY = 'nav_msgs/msg/Odometry'
RANGE = 'sensor_msgs/msg/Range'
PX4_HEIGHTS = ('px4_msgs/msg/DistanceSensor', 'px4_msgs/msg/VehicleLocalPosition')
TF_MESSAGE = 'tf2_msgs/msg/TFMessage'

_TRANSPORT_SUFFIX = '/compressed'
# What drivers call topics of distances, image_transport's own format for them included.
_DEPTH = 'depth'
_MOST_NAMED = 4


class SensorTopics(NamedTuple):
    """Names of the topics that matter; None where the recording has none.

    ``added`` are the modalities beside camera and radar, each with its topic. ``ranges`` are the
    topics of rangefinders, and ``px4_heights`` what PX4 says of the height above the ground.
    """

    camera: str | None
    camera_info: str | None
    radar: str | None
    odometry: str | None
    compressed: bool
    added: tuple[tuple[str, str], ...] = ()
    ranges: tuple[str, ...] = ()
    px4_heights: tuple[str, ...] = ()


def choose_topics(
    topics: Sequence[TopicInfo],
    camera: str | None = None,
    radar: str | None = None,
    odometry: str | None = None,
) -> SensorTopics:
    """Find the sensors' topics by type; a name that is given decides.

    A camera that is recorded both raw and compressed is one camera, and the raw topic is
    used: it costs no decoding. Name the compressed one to have it instead. ``camera_info`` is
    the one beside the chosen camera, as image_transport has it. Topics of added modalities
    (encoder_registry) are found by their names, and are no candidates for others.

    :raises BagError: if a kind has several candidates, a given name does not exist or is of
        another type, or there is neither camera nor radar
    """
    recorded = [topic for topic in topics if topic.count]
    names = {topic.name: topic.msgtype for topic in recorded}
    added = _added(recorded)
    recorded = [topic for topic in recorded if topic.name not in dict(added).values()]
    chosen_camera = _choose_camera(recorded, camera)
    chosen_radar = _choose(recorded, (POINT_CLOUD,), radar, 'radar')
    if chosen_camera is None and chosen_radar is None:
        listed = ', '.join(f'{t.name} ({t.msgtype})' for t in topics) or 'none'
        raise BagError(
            f'the recording has neither a camera ({IMAGE}, {COMPRESSED_IMAGE}) nor a radar '
            f'({POINT_CLOUD}; depth is no picture); its topics: {listed}'
            + ''.join(f'; {note}' for note in foreign_types(topics))
        )
    info = None
    if chosen_camera is not None:
        info = _base(chosen_camera).rpartition('/')[0] + '/camera_info'
    return SensorTopics(
        camera=chosen_camera,
        camera_info=info if info and names.get(info) == CAMERA_INFO else None,
        radar=chosen_radar,
        odometry=_choose(recorded, (ODOMETRY,), odometry, 'odometry'),
        compressed=chosen_camera is not None and names[chosen_camera] == COMPRESSED_IMAGE,
        added=added,
        ranges=tuple(t.name for t in recorded if t.msgtype == RANGE),
        px4_heights=tuple(t.name for t in recorded if t.msgtype in PX4_HEIGHTS),
    )


def foreign_types(topics: Sequence[TopicInfo]) -> list[str]:
    """Say that types are named as in ROS 1, where they are: such topics are not read."""
    foreign = sorted({t.msgtype for t in topics if t.msgtype.count('/') == 1})
    if not foreign:
        return []
    return [
        f'types are named as in ROS 1 ({", ".join(foreign[:_MOST_NAMED])}, without /msg/): '
        'convert the original recording with rosbags-convert'
    ]


def _added(recorded: Sequence[TopicInfo]) -> tuple[tuple[str, str], ...]:
    """Return the added modalities that were recorded, each with its topic."""
    chosen = []
    for kind in added_kinds():
        same = [
            topic.name
            for topic in recorded
            if topic.msgtype == kind.message_type and f'/{topic.name}'.endswith(f'/{kind.topic}')
        ]
        if len(same) > 1:
            raise BagError(
                f'the recording has {len(same)} topics that may be the {kind.modality}: '
                f'{", ".join(same)}; keep one of them'
            )
        chosen += [(kind.modality, name) for name in same]
    return tuple(chosen)


def is_tf_static(topic: TopicInfo) -> bool:
    """Tell whether a topic holds static transforms."""
    return topic.msgtype == TF_MESSAGE and topic.name.rpartition('/')[2] == 'tf_static'


def unknown_topic(name: str, names: Iterable[str]) -> BagError:
    """Make the error for a topic that does not exist; it names the nearest one."""
    near = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.0)
    hint = f'; the nearest is {near[0]!r}' if near else ''
    return BagError(f'the recording has no messages on {name!r}{hint}')


def _base(name: str) -> str:
    """Return the name of a picture topic without image_transport's suffix."""
    return name.removesuffix(_TRANSPORT_SUFFIX)


def _is_depth(name: str) -> bool:
    """Say whether a topic of pictures holds distances, by its name."""
    return _DEPTH in name.lower()


def _choose_camera(recorded: Sequence[TopicInfo], given: str | None) -> str | None:
    pictures = {t.name for t in recorded if t.msgtype in (IMAGE, COMPRESSED_IMAGE)}
    if given is not None:
        if given in pictures and _is_depth(given):
            raise BagError(
                f'--camera {given} holds distances; name pictures in colour or infrared'
            )
        if given not in pictures and given + _TRANSPORT_SUFFIX in pictures:
            return given + _TRANSPORT_SUFFIX
        return _choose(recorded, (IMAGE, COMPRESSED_IMAGE), given, 'camera')
    colour = [t for t in recorded if not _is_depth(t.name)]
    transported = {_base(t.name) for t in colour if t.msgtype == IMAGE}
    one_each = [
        t for t in colour if t.msgtype != COMPRESSED_IMAGE or _base(t.name) not in transported
    ]
    return _choose(one_each, (IMAGE, COMPRESSED_IMAGE), None, 'camera')


def _choose(
    recorded: Sequence[TopicInfo], msgtypes: tuple[str, ...], given: str | None, option: str
) -> str | None:
    if given is not None:
        chosen = next((topic for topic in recorded if topic.name == given), None)
        if chosen is None:
            raise unknown_topic(given, [topic.name for topic in recorded])
        if chosen.msgtype not in msgtypes:
            raise BagError(
                f'--{option} {given} is a {chosen.msgtype}; expected {" or ".join(msgtypes)}'
            )
        return given
    candidates = sorted(topic.name for topic in recorded if topic.msgtype in msgtypes)
    if len(candidates) > 1:
        raise BagError(
            f'the recording has {len(candidates)} topics that may be the {option}: '
            f'{", ".join(candidates)}; choose one with --{option} TOPIC'
        )
    return candidates[0] if candidates else None
