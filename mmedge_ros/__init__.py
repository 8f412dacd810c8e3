"""Real-time multimodal perception for drones: camera and mmWave radar, pipelined."""

from pkgutil import extend_path

# In a source checkout the generated messages live beside the installed copy, not here:
# extending the path lets `mmedge_ros.msg` be found while the sources stay in front.
__path__ = extend_path(__path__, __name__)
__version__ = '0.1.0'


class MmedgeError(ValueError):
    """Base of all errors that a user can act on; the message names value, place and remedy."""
