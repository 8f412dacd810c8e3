"""The topics of the graph: one table that recordings, the documentation and tests read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mmedge_ros.ros.messages import names

SENSOR = 'sensor'
RESULT = 'result'
PICTURE = 'picture'
LATCHED = 'latched'
PLAIN = 'plain'

# What the profiles promise, for the documentation; their definitions are in `qos`.
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


# Of each topic: type, profile and whether it is recorded; who publishes and who subscribes (-:
# other packages); and what it carries. Lines go on where they are indented by four.
_TABLE = """
camera/image: sensor_msgs/msg/Image, sensor, recorded
  camera bag_player -> unit_encoder visualizer viewer
  pictures, stamped at mid-exposure where the camera reports it
camera/image/compressed: sensor_msgs/msg/CompressedImage, sensor, recorded
  camera bag_player -> unit_encoder visualizer viewer
  the same as JPEG or PNG; one of the two is in use
camera/image/slot: mmedge_ros/msg/PictureSlot, sensor
  camera bag_player -> unit_encoder
  a raw picture lies in shared memory of this machine; `camera/image` is then only sent where
    something else subscribes to it
camera/camera_info: sensor_msgs/msg/CameraInfo, sensor, recorded
  camera bag_player -> fusion viewer memory
  the camera's calibration
radar/points: sensor_msgs/msg/PointCloud2, sensor, recorded
  radar bag_player -> unit_encoder
  x, y, z (m), velocity (m/s, positive = receding), optional snr (dB)
odom: nav_msgs/msg/Odometry, sensor, recorded
  bag_player -> fusion viewer memory questions
  the drone's own motion; tracks then live in its frame
fmu/out/vehicle_odometry: px4_msgs/msg/VehicleOdometry, sensor
  - -> fusion viewer memory questions
  the same from PX4, where px4_msgs is installed and nothing comes on `odom`
rangefinder: sensor_msgs/msg/Range, sensor, recorded
  bag_player -> fusion
  how far the ground is below, along x of its frame; of a frame that no transform describes,
    straight down
fmu/out/distance_sensor: px4_msgs/msg/DistanceSensor, sensor
  - -> fusion
  the same from PX4, where px4_msgs is installed
fmu/out/vehicle_local_position: px4_msgs/msg/VehicleLocalPosition, sensor
  - -> fusion
  the same from PX4's estimator (`dist_bottom`)
/tf_static: tf2_msgs/msg/TFMessage, latched, recorded
  bag_player -> fusion viewer memory questions
  where the sensors sit, where tf2_msgs is installed
/tf: tf2_msgs/msg/TFMessage, result, recorded
  bag_player fusion -> fusion viewer memory questions
  ego motion, where there is no odometry; from fusion odom -> base_link by odometry, if
    `publish_transform` is set and no other node publishes it
battery_state: sensor_msgs/msg/BatteryState, sensor, recorded
  - -> monitor
  the autopilot's battery
system_state: mmedge_ros/msg/SystemState, result, recorded
  monitor -> configuration_optimizer viewer
  supply, load and temperature of the computer
perception/configuration: mmedge_ros/msg/Configuration, latched, recorded
  configuration_optimizer -> unit_encoder fusion visualizer viewer questions camera radar
    bag_player
  rate and level of each modality, from a stamp on
perception/power_state: mmedge_ros/msg/PowerState, latched, recorded
  configuration_optimizer -> visualizer unit_encoder
  what the battery leaves to perception
perception/brick_plan: mmedge_ros/msg/BrickPlan, result, recorded
  unit_encoder fusion -> configuration_optimizer
  what the networks of a node do and cost, once a second and when a state changes
perception/skip_decision: mmedge_ros/msg/SkipDecision, result, recorded
  fusion -> unit_encoder configuration_optimizer camera radar bag_player
  a lease during which a modality rests
perception/latency_demand: mmedge_ros/msg/LatencyDemand, result, recorded
  questions -> configuration_optimizer
  how long a consumer works on a decision: a lease that shortens the latency limit
perception/unit_receipts: mmedge_ros/msg/UnitReceipt, result
  unit_encoder -> fusion configuration_optimizer visualizer
  a unit has arrived, or will not be encoded
perception/unit_features: mmedge_ros/msg/UnitFeatures, result
  unit_encoder -> fusion configuration_optimizer viewer
  detections, returns, embedding and trail of a unit
perception/tracks: mmedge_ros/msg/TrackArray, result, recorded
  fusion -> visualizer configuration_optimizer viewer unit_encoder questions
  the decision of one window, and an update as each picture completes: tracks with position,
    velocity, covariance, latency and age
perception/track_labels: mmedge_ros/msg/TrackLabels, result
  unit_encoder -> fusion
  what a recogniser says of tracks, where one is asked for
perception/novelties: mmedge_ros/msg/Novelty, result, recorded
  unit_encoder -> -
  something came into view that had not been there for a while, where a recogniser runs
perception/moments: mmedge_ros/msg/Moment, result
  unit_encoder -> memory
  a view that is worth remembering, where `memory.rate` is above 0: pictures of people
memory/markers: visualization_msgs/msg/MarkerArray, latched
  memory -> -
  where the moments of the last answer were, for RViz and Foxglove
questions/ask: std_msgs/msg/String, result
  - -> questions
  a question about what was perceived, in one line
questions/answer: std_msgs/msg/String, result
  questions -> -
  in its first line the question, then its answer, then what a language model says if there is
    one
perception/description: std_msgs/msg/String, result
  questions -> -
  a sentence of a language model about the newest decision
perception/wake: std_msgs/msg/String, result
  questions -> configuration_optimizer
  wakes a camera that stands by for a burst; says why
perception/markers: visualization_msgs/msg/MarkerArray, result, recorded
  visualizer -> -
  tracks for RViz and Foxglove
perception/status_marker: visualization_msgs/msg/Marker, result
  visualizer -> -
  configuration, latency and age as a text for RViz
perception/annotated_image: sensor_msgs/msg/Image, picture
  visualizer -> -
  pictures with the tracks drawn in, only while there is a subscriber
perception/detections_3d: vision_msgs/msg/Detection3DArray, result
  visualizer -> -
  the tracks in the words of vision_msgs, where that is installed
perception/detections_2d: vision_msgs/msg/Detection2DArray, result
  visualizer -> -
  the boxes of the tracks, the same
bag_player/playback: mmedge_ros/msg/PlaybackState, latched
  bag_player -> monitor viewer
  offset from bag time to stamps
/clock: rosgraph_msgs/msg/Clock, plain
  bag_player -> -
  simulated time, at another speed than 1 or on demand
ground_truth: mmedge_ros/msg/GroundTruth, result, recorded
  - -> -
  what is really there, from a simulator
ground_truth/reach: mmedge_ros/msg/GroundTruthReach, result, recorded
  - -> -
  whom the sensors could see, from a simulated flight that is hard
/diagnostics: diagnostic_msgs/msg/DiagnosticArray, plain
  camera radar unit_encoder fusion visualizer monitor bag_recorder configuration_optimizer
    memory questions -> monitor
  state of every node, once a second and at once when it changes
"""


def _interfaces(table: str) -> tuple[Interface, ...]:
    """Read the table."""
    found = []
    lines = iter(re.sub(r'\n {4}', ' ', table).strip().splitlines())
    for head, ends, meaning in zip(lines, lines, lines, strict=True):
        topic, _, about = head.partition(': ')
        msgtype, profile, *recorded = about.split(', ')
        publishers, subscribers = (
            tuple(side.replace('-', ' ').split()) for side in ends.split(' -> ')
        )
        found.append(
            Interface(
                topic, msgtype, profile, publishers, subscribers, meaning.strip(), bool(recorded)
            )
        )
    return tuple(found)


INTERFACES = _interfaces(_TABLE)

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
