"""Topic names of the graph; all relative, so that a namespace or a remap moves them."""

from __future__ import annotations

CAMERA_IMAGE = 'camera/image'
CAMERA_IMAGE_COMPRESSED = 'camera/image/compressed'
CAMERA_INFO = 'camera/camera_info'
RADAR_POINTS = 'radar/points'
ODOMETRY = 'odom'
# As PX4 calls it; a drone's namespace comes before it there, too.
PX4_ODOMETRY = 'fmu/out/vehicle_odometry'
# Looks down, whatever the name of its frame.
RANGEFINDER = 'rangefinder'
PX4_DISTANCE = 'fmu/out/distance_sensor'
PX4_LOCAL_POSITION = 'fmu/out/vehicle_local_position'
BATTERY_STATE = 'battery_state'
SYSTEM_STATE = 'system_state'
GROUND_TRUTH = 'ground_truth'

UNIT_RECEIPTS = 'perception/unit_receipts'
UNIT_FEATURES = 'perception/unit_features'
TRACKS = 'perception/tracks'
TRACK_LABELS = 'perception/track_labels'
NOVELTIES = 'perception/novelties'
MOMENTS = 'perception/moments'
MEMORY_QUERY = 'memory/query'
ASK = 'ask'
QUESTIONS = 'questions/ask'
ANSWERS = 'questions/answer'
WAKE = 'perception/wake'
MEMORY_MARKERS = 'memory/markers'
MARKERS = 'perception/markers'
STATUS_MARKER = 'perception/status_marker'
DETECTIONS_2D = 'perception/detections_2d'
DETECTIONS_3D = 'perception/detections_3d'
ANNOTATED_IMAGE = 'perception/annotated_image'
CONFIGURATION = 'perception/configuration'
POWER_STATE = 'perception/power_state'
BRICK_PLAN = 'perception/brick_plan'
SKIP_DECISION = 'perception/skip_decision'
LATENCY_DEMAND = 'perception/latency_demand'
DESCRIPTION = 'perception/description'
PLAYBACK = 'bag_player/playback'
CLOCK = '/clock'
DIAGNOSTICS = '/diagnostics'
TRANSFORMS = '/tf'
STATIC_TRANSFORMS = '/tf_static'


def driver_remappings(
    camera: str = '', radar: str = '', odometry: str = '', battery: str = ''
) -> tuple[tuple[str, str], ...]:
    """Point the graph's inputs at the topics of drivers, by image_transport's conventions."""
    remaps: list[tuple[str, str]] = []
    if camera:
        namespace = camera.rpartition('/')[0]
        remaps += [
            (CAMERA_IMAGE, camera),
            (CAMERA_IMAGE_COMPRESSED, f'{camera}/compressed'),
            (CAMERA_INFO, f'{namespace}/camera_info' if namespace else 'camera_info'),
        ]
    if radar:
        remaps.append((RADAR_POINTS, radar))
    if odometry:
        remaps.append((ODOMETRY, odometry))
    if battery:
        remaps.append((BATTERY_STATE, battery))
    return tuple(remaps)
