"""The topics of the graph: one table that recordings, the documentation and tests read."""

from __future__ import annotations

from dataclasses import dataclass

from mmedge_ros.ros.messages import names

SENSOR = 'sensor'
RESULT = 'result'
PICTURE = 'picture'
LATCHED = 'latched'
PLAIN = 'plain'

# What the profiles promise, for the documentation; their definitions are in ros.qos.
PROFILES = {
    SENSOR: 'best effort, 5 deep',
    RESULT: 'reliable, 20 deep',
    PICTURE: 'reliable, 2 deep',
    LATCHED: 'reliable, the last one is kept for late subscribers',
    PLAIN: 'reliable, 10 deep',
}


@dataclass(frozen=True)
class Interface:
    """A topic with its publishers and subscribers, by executables; empty: other packages.

    ``recorded``: part of a recording unless others are named.
    """

    topic: str
    msgtype: str
    profile: str
    publishers: tuple[str, ...]
    subscribers: tuple[str, ...]
    meaning: str
    recorded: bool = False


@dataclass(frozen=True)
class Service:
    """A service or an action, with the executable that answers."""

    name: str
    kind: str
    server: str
    meaning: str


_SOURCES = ('camera', 'bag_player')
_DRIVERS = ('camera', 'radar', 'bag_player')

INTERFACES = (
    Interface(
        names.CAMERA_IMAGE,
        'sensor_msgs/msg/Image',
        SENSOR,
        _SOURCES,
        ('unit_encoder', 'visualizer', 'viewer'),
        'pictures, stamped at mid-exposure where the camera reports it',
        recorded=True,
    ),
    Interface(
        names.CAMERA_IMAGE_COMPRESSED,
        'sensor_msgs/msg/CompressedImage',
        SENSOR,
        _SOURCES,
        ('unit_encoder', 'visualizer', 'viewer'),
        'the same as JPEG or PNG; one of the two is in use',
        recorded=True,
    ),
    Interface(
        names.CAMERA_IMAGE_SLOT,
        'mmedge_ros/msg/PictureSlot',
        SENSOR,
        _SOURCES,
        ('unit_encoder',),
        'a raw picture lies in shared memory of this machine; `camera/image` is then only sent '
        'where something else subscribes to it',
    ),
    Interface(
        names.CAMERA_INFO,
        'sensor_msgs/msg/CameraInfo',
        SENSOR,
        _SOURCES,
        ('fusion', 'viewer', 'memory'),
        "the camera's calibration",
        recorded=True,
    ),
    Interface(
        names.RADAR_POINTS,
        'sensor_msgs/msg/PointCloud2',
        SENSOR,
        ('radar', 'bag_player'),
        ('unit_encoder',),
        'x, y, z (m), velocity (m/s, positive = receding), optional snr (dB)',
        recorded=True,
    ),
    Interface(
        names.ODOMETRY,
        'nav_msgs/msg/Odometry',
        SENSOR,
        ('bag_player',),
        ('fusion', 'viewer', 'memory', 'questions'),
        "the drone's own motion; tracks then live in its frame",
        recorded=True,
    ),
    Interface(
        names.PX4_ODOMETRY,
        'px4_msgs/msg/VehicleOdometry',
        SENSOR,
        (),
        ('fusion', 'viewer', 'memory', 'questions'),
        'the same from PX4, where px4_msgs is installed and nothing comes on `odom`',
    ),
    Interface(
        names.STATIC_TRANSFORMS,
        'tf2_msgs/msg/TFMessage',
        LATCHED,
        ('bag_player',),
        ('fusion', 'viewer', 'memory', 'questions'),
        'where the sensors sit, where tf2_msgs is installed',
        recorded=True,
    ),
    Interface(
        names.TRANSFORMS,
        'tf2_msgs/msg/TFMessage',
        RESULT,
        ('bag_player', 'fusion'),
        ('fusion', 'viewer', 'memory', 'questions'),
        'ego motion, where there is no odometry; from fusion odom -> base_link by odometry, if '
        '`publish_transform` is set and no other node publishes it',
        recorded=True,
    ),
    Interface(
        names.BATTERY_STATE,
        'sensor_msgs/msg/BatteryState',
        SENSOR,
        (),
        ('monitor',),
        "the autopilot's battery",
        recorded=True,
    ),
    Interface(
        names.SYSTEM_STATE,
        'mmedge_ros/msg/SystemState',
        RESULT,
        ('monitor',),
        ('configuration_optimizer', 'viewer'),
        'supply, load and temperature of the computer',
        recorded=True,
    ),
    Interface(
        names.CONFIGURATION,
        'mmedge_ros/msg/Configuration',
        LATCHED,
        ('configuration_optimizer',),
        ('unit_encoder', 'fusion', 'visualizer', 'viewer', 'questions', *_DRIVERS),
        'rate and level of each modality, from a stamp on',
        recorded=True,
    ),
    Interface(
        names.POWER_STATE,
        'mmedge_ros/msg/PowerState',
        LATCHED,
        ('configuration_optimizer',),
        ('visualizer', 'unit_encoder'),
        'what the battery leaves to perception',
        recorded=True,
    ),
    Interface(
        names.BRICK_PLAN,
        'mmedge_ros/msg/BrickPlan',
        RESULT,
        ('unit_encoder', 'fusion'),
        ('configuration_optimizer',),
        'what the networks of a node do and cost, once a second and when a state changes',
        recorded=True,
    ),
    Interface(
        names.SKIP_DECISION,
        'mmedge_ros/msg/SkipDecision',
        RESULT,
        ('fusion',),
        ('unit_encoder', 'configuration_optimizer', *_DRIVERS),
        'a lease during which a modality rests',
        recorded=True,
    ),
    Interface(
        names.LATENCY_DEMAND,
        'mmedge_ros/msg/LatencyDemand',
        RESULT,
        ('questions',),
        ('configuration_optimizer',),
        'how long a consumer works on a decision: a lease that shortens the latency limit',
        recorded=True,
    ),
    Interface(
        names.UNIT_RECEIPTS,
        'mmedge_ros/msg/UnitReceipt',
        RESULT,
        ('unit_encoder',),
        ('fusion', 'configuration_optimizer', 'visualizer'),
        'a unit has arrived, or will not be encoded',
    ),
    Interface(
        names.UNIT_FEATURES,
        'mmedge_ros/msg/UnitFeatures',
        RESULT,
        ('unit_encoder',),
        ('fusion', 'configuration_optimizer', 'viewer'),
        'detections, returns, embedding and trail of a unit',
    ),
    Interface(
        names.TRACKS,
        'mmedge_ros/msg/TrackArray',
        RESULT,
        ('fusion',),
        ('visualizer', 'configuration_optimizer', 'viewer', 'unit_encoder', 'questions'),
        'the decision of one window, and an update as each picture completes: tracks with '
        'position, velocity, covariance, latency and age',
        recorded=True,
    ),
    Interface(
        names.TRACK_LABELS,
        'mmedge_ros/msg/TrackLabels',
        RESULT,
        ('unit_encoder',),
        ('fusion',),
        'what a recogniser says of tracks, where one is asked for',
    ),
    Interface(
        names.NOVELTIES,
        'mmedge_ros/msg/Novelty',
        RESULT,
        ('unit_encoder',),
        (),
        'something came into view that had not been there for a while, where a recogniser runs',
        recorded=True,
    ),
    Interface(
        names.MOMENTS,
        'mmedge_ros/msg/Moment',
        RESULT,
        ('unit_encoder',),
        ('memory',),
        'a view that is worth remembering, where `memory.rate` is above 0: pictures of people',
    ),
    Interface(
        names.MEMORY_MARKERS,
        'visualization_msgs/msg/MarkerArray',
        LATCHED,
        ('memory',),
        (),
        'where the moments of the last answer were, for RViz and Foxglove',
    ),
    Interface(
        names.QUESTIONS,
        'std_msgs/msg/String',
        RESULT,
        (),
        ('questions',),
        'a question about what was perceived, in one line',
    ),
    Interface(
        names.ANSWERS,
        'std_msgs/msg/String',
        RESULT,
        ('questions',),
        (),
        'in its first line the question, then its answer, then what a language model says if '
        'there is one',
    ),
    Interface(
        names.DESCRIPTION,
        'std_msgs/msg/String',
        RESULT,
        ('questions',),
        (),
        'a sentence of a language model about the newest decision',
    ),
    Interface(
        names.WAKE,
        'std_msgs/msg/String',
        RESULT,
        ('questions',),
        ('configuration_optimizer',),
        'wakes a camera that stands by for a burst; says why',
    ),
    Interface(
        names.MARKERS,
        'visualization_msgs/msg/MarkerArray',
        RESULT,
        ('visualizer',),
        (),
        'tracks for RViz and Foxglove',
        recorded=True,
    ),
    Interface(
        names.STATUS_MARKER,
        'visualization_msgs/msg/Marker',
        RESULT,
        ('visualizer',),
        (),
        'configuration, latency and age as a text for RViz',
    ),
    Interface(
        names.ANNOTATED_IMAGE,
        'sensor_msgs/msg/Image',
        PICTURE,
        ('visualizer',),
        (),
        'pictures with the tracks drawn in, only while there is a subscriber',
    ),
    Interface(
        names.DETECTIONS_3D,
        'vision_msgs/msg/Detection3DArray',
        RESULT,
        ('visualizer',),
        (),
        'the tracks in the words of vision_msgs, where that is installed',
    ),
    Interface(
        names.DETECTIONS_2D,
        'vision_msgs/msg/Detection2DArray',
        RESULT,
        ('visualizer',),
        (),
        'the boxes of the tracks, the same',
    ),
    Interface(
        names.PLAYBACK,
        'mmedge_ros/msg/PlaybackState',
        LATCHED,
        ('bag_player',),
        ('monitor', 'viewer'),
        'offset from bag time to stamps',
    ),
    Interface(
        names.CLOCK,
        'rosgraph_msgs/msg/Clock',
        PLAIN,
        ('bag_player',),
        (),
        'simulated time, at another speed than 1 or on demand',
    ),
    Interface(
        names.GROUND_TRUTH,
        'mmedge_ros/msg/GroundTruth',
        RESULT,
        (),
        (),
        'what is really there, from a simulator',
        recorded=True,
    ),
    Interface(
        names.DIAGNOSTICS,
        'diagnostic_msgs/msg/DiagnosticArray',
        PLAIN,
        (
            *('camera', 'radar', 'unit_encoder', 'fusion', 'visualizer', 'monitor'),
            *('bag_recorder', 'configuration_optimizer', 'memory', 'questions'),
        ),
        ('monitor',),
        'state of every node, once a second and at once when it changes',
    ),
)

SERVICES = (
    Service(
        names.MEMORY_QUERY,
        'mmedge_ros/srv/QueryMemory',
        'memory',
        'moments of this flight that fit words, an example, a place or a time',
    ),
    Service(
        names.ASK,
        'mmedge_ros/action/Ask',
        'questions',
        'a question about what was perceived: what was measured, and what a language model says '
        'if there is one',
    ),
)


def recorded_topics() -> tuple[str, ...]:
    """Return the topics a recording holds unless others are named."""
    return tuple(interface.topic for interface in INTERFACES if interface.recorded)
