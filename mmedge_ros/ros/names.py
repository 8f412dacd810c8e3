"""Topic names of the graph; all relative, so that a namespace or a remap moves them."""

CAMERA_IMAGE = 'camera/image'
CAMERA_IMAGE_COMPRESSED = 'camera/image/compressed'
CAMERA_INFO = 'camera/camera_info'
RADAR_POINTS = 'radar/points'
ODOMETRY = 'odom'

UNIT_RECEIPTS = 'perception/unit_receipts'
UNIT_FEATURES = 'perception/unit_features'
TRACKS = 'perception/tracks'
MARKERS = 'perception/markers'
ANNOTATED_IMAGE = 'perception/annotated_image'
CONFIGURATION = 'perception/configuration'
SKIP_DECISION = 'perception/skip_decision'
PLAYBACK = 'bag_player/playback'
CLOCK = '/clock'
