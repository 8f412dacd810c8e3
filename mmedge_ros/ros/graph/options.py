"""The one record of options with which the graph is started.

The commands `mmedge up`, `mmedge replay` and `mmedge record`, the launch files, the description of
the graph and tests read it. A new option is one field: its default, what it does, its limits, and
which commands and launch files take it. Nothing here needs ROS.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from mmedge_ros.core.data_types import CAMERA, MOST_REUSE, RADAR
from mmedge_ros.core.parameter import ParameterBounds, ParameterError, check_value

_T = TypeVar('_T')

# Commands and launch files, for ``of``.
UP, REPLAY, RECORD = 'mmedge up', 'mmedge replay', 'mmedge record'
DRONE, PERCEPTION = 'drone.launch.py', 'perception.launch.py'
REPLAY_FILE, RECORD_FILE, RVIZ = 'replay.launch.py', 'record.launch.py', 'rviz.launch.py'
_FLYING = (UP, DRONE, PERCEPTION)
_PLAYING = (UP, REPLAY, REPLAY_FILE)
_ALL = (UP, REPLAY, DRONE, PERCEPTION, REPLAY_FILE)
_RECORDING = (RECORD, RECORD_FILE)
# A sensor that another driver reads, or that is not there.
_NONE = 'none'

# Panels of the help of commands.
SENSORS, LIVE, DRIVERS, FILES = 'Sensors', 'Live graph', 'Drivers of your own', 'Recording'


class FlagForm(NamedTuple):
    """How an option looks on the command line.

    ``path`` is `file` or `any` for what must exist, `new` for what need not; '' is no path.
    """

    metavar: str = ''
    panel: str = ''
    flag: str = ''
    path: str = ''


class Option(NamedTuple):
    """A field that commands or launch files take."""

    name: str
    default: Any
    bounds: ParameterBounds
    of: tuple[str, ...]
    form: FlagForm


def shared(
    default: Any,
    description: str,
    of: tuple[str, ...],
    form: FlagForm = FlagForm(),  # noqa: B008
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare a field that a user may set.

    :param of: commands and launch files that take it
    """
    bounds = ParameterBounds(description, '', minimum, maximum, choices)
    return dataclasses.field(default=default, metadata={'option': (bounds, of, form)})


def options_of(kind: type, taker: str) -> list[Option]:
    """Return the options that a command or launch file takes, in order."""
    declared = (f for f in dataclasses.fields(kind) if 'option' in f.metadata)
    options = [Option(f.name, f.default, *f.metadata['option']) for f in declared]
    return [item for item in options if taker in item.of]


def _topic(words: str, of: tuple[str, ...]) -> Any:
    return shared('', words, of, FlagForm('TOPIC', DRIVERS))


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Where the inputs of the graph come from, and which clock holds."""

    camera: str = _topic(
        'image topic of the driver, or of the recording where types do not decide',
        (*_PLAYING, PERCEPTION, *_RECORDING),
    )
    radar: str = _topic(
        'point cloud topic of the driver, or of the recording where types do not decide',
        (*_PLAYING, PERCEPTION, *_RECORDING),
    )
    odometry: str = _topic("autopilot's odometry topic", (*_FLYING, *_RECORDING))
    battery: str = _topic(
        "autopilot's battery topic, such as /mavros/battery", (DRONE, PERCEPTION, RECORD_FILE)
    )
    clock: bool = shared(
        False, 'publish and follow /clock', (*_PLAYING, RECORD), FlagForm(panel=LIVE)
    )
    extrinsics: str = shared(
        '',
        'YAML with where the sensors sit, see config/extrinsics.yaml; for graphs that publish no '
        '/tf_static',
        (*_FLYING, *_RECORDING),
        FlagForm(panel=SENSORS, path='file'),
    )
    frame_prefix: str = shared(
        '',
        'before the name of every frame, such as drone1/, for several drones in one transform '
        'tree',
        (DRONE, PERCEPTION, RECORD_FILE, RVIZ),
    )
    # Static ones, each "parent child x y z qx qy qz qw" in m, on top of those of ``extrinsics``.
    transforms: tuple[str, ...] = shared(
        (),
        '"parent child x y z qx qy qz qw" (m), repeatable',
        (UP,),
        FlagForm('TRANSFORM', SENSORS),
    )


@dataclass(frozen=True, kw_only=True)
class GraphOptions(InputOptions):
    """A start of the graph; empty texts mean the default.

    Without a ``bag`` sensors or drivers are expected. ``view`` is the port of the live page; 0
    makes none. The fields at the end are for programs: ``above`` says that a drone in flight takes
    the pictures; ``camera_driver``, ``radar_driver``, ``monitor`` and ``optimizer`` are parameters
    of these nodes, and None leaves them out; ``question_parameters`` join those of the node that
    answers questions. The player of a recording waits for the nodes ``wait_for`` too.
    """

    bag: str = shared(
        '',
        'play this recording as the sensors',
        (UP, REPLAY_FILE),
        FlagForm('BAG', SENSORS, path='any'),
    )
    loop: bool = shared(
        False, 'start the recording over and over', (UP, REPLAY_FILE), FlagForm(panel=SENSORS)
    )
    rate: float = shared(
        1.0,
        'speed of the recording; not 1: on /clock',
        _PLAYING,
        FlagForm('FACTOR', LIVE),
        minimum=0.05,
        maximum=20.0,
    )
    detector: str = shared(
        '',
        'weights (.onnx, .pt), bundle folder, or the name of a bundle; empty: what fits best',
        _ALL,
        FlagForm('DETECTOR', path='new'),
    )
    trust_weights: bool = shared(
        False,
        'export a .pt detector, which runs whatever code is in it; once for each file',
        _ALL,
    )
    calibration: str = shared(
        '',
        'camera_info YAML (and transforms) to use instead of the recorded or published '
        'calibration',
        (*_PLAYING, PERCEPTION),
        FlagForm(panel=FILES, path='file'),
    )
    params: str = shared('', 'ROS parameter file', (UP, REPLAY), FlagForm(path='file'))
    image_transport: str = shared(
        'raw',
        'form of the pictures on the graph',
        _FLYING,
        FlagForm('KIND', SENSORS),
        choices=('raw', 'compressed'),
    )
    reuse: int = shared(
        1,
        'encode about every N-th picture, and follow the detected objects by image motion in the '
        'others: less load, a little less accuracy',
        (REPLAY,),
        FlagForm('N'),
        minimum=1,
        maximum=MOST_REUSE,
    )
    recogniser: str = shared(
        '',
        'say more of tracked objects: class, colours, and what is new in view; `bundle` takes the '
        "recogniser of the detector's bundle, or name a bundle folder with one",
        (UP, REPLAY, DRONE, PERCEPTION),
        FlagForm('BUNDLE'),
    )
    memory: str = shared(
        '',
        'remember what is seen, people too, as small pictures in FOLDER.memory, to be searched in '
        'words (mmedge memory); nothing is kept without it',
        _FLYING,
        FlagForm('FOLDER', LIVE, path='new'),
    )
    questions: bool = shared(
        False,
        'answer questions, by the action ask and as text (docs/memory.md)',
        (*_FLYING, REPLAY_FILE),
        FlagForm(panel=LIVE),
    )
    model: str = shared(
        '',
        'let a language model say more: a server on this machine such as http://127.0.0.1:8080, '
        'or your own file, loaded for each question (docs)',
        (*_FLYING, REPLAY_FILE),
        FlagForm('ADDRESS|GGUF'),
    )
    projector: str = shared(
        '',
        'projector that lets a GGUF see pictures of the memory',
        (*_FLYING, REPLAY_FILE),
        FlagForm(flag='--mmproj', path='file'),
    )
    optimise: bool = shared(
        False,
        'choose rates and levels in flight by latency, battery and load (adds the monitor)',
        _ALL,
        FlagForm(panel=LIVE),
    )
    profile: str = shared(
        '',
        'device profile of this machine (mmedge profile), for optimise',
        (*_FLYING, REPLAY_FILE),
        FlagForm(panel=LIVE, path='file'),
    )
    single_process: bool = shared(
        False, 'all nodes in one process, to debug', (UP, REPLAY_FILE), FlagForm(panel=LIVE)
    )
    logs: str = shared(
        '', "folder of the nodes' logs \\[out/logs]", (UP,), FlagForm('FOLDER', LIVE, path='new')
    )

    view: int = 0
    # Of a video, deg, and of a folder of pictures, Hz; see `PictureParameters`.
    fov: float = 70.0
    fps: float = 30.0
    modalities: tuple[str, ...] = (CAMERA, RADAR)
    simulated: bool = False
    above: bool = False
    visualizer: bool = True
    camera_driver: Mapping[str, Any] | None = None
    radar_driver: Mapping[str, Any] | None = None
    monitor: Mapping[str, Any] | None = None
    optimizer: Mapping[str, Any] | None = None
    question_parameters: Mapping[str, Any] | None = None
    wait_for: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RecordOptions(InputOptions):
    """What is recorded of a running graph; ``out`` is the folder to be made."""

    out: str = shared('', 'folder to be made for the recording', (RECORD_FILE,))
    topics: tuple[str, ...] = shared(
        (), 'record this instead of the usual topics, repeatable', _RECORDING, FlagForm('TOPIC')
    )
    image_transport: str = shared(
        'auto',
        'form of the pictures',
        _RECORDING,
        FlagForm('KIND'),
        choices=('auto', 'raw', 'compressed'),
    )
    split_size: int = shared(
        1000, 'MB after which a new file begins; 0: never', _RECORDING, FlagForm('MB'), minimum=0
    )
    min_free: int = shared(
        500, 'MB to be kept free on the disk', _RECORDING, FlagForm('MB'), minimum=0
    )
    seconds: float = shared(
        0.0, 'end after this; 0: with Ctrl-C', (RECORD,), FlagForm('S'), minimum=0.0
    )


@dataclass(frozen=True, kw_only=True)
class DriverOptions:
    """Camera and radar that the package's own drivers read; none where another one publishes."""

    camera: str = shared(
        'v4l2',
        'how the camera is read, or none where a driver publishes already',
        (DRONE,),
        choices=('v4l2', 'realsense', 'gstreamer', 'file', _NONE),
    )
    camera_device: str = shared(
        '', 'device path, serial number, GStreamer pipeline or file; empty: first', (DRONE,)
    )
    camera_calibration: str = shared(
        '', 'camera_info YAML; empty takes what the camera knows of itself', (DRONE,)
    )
    width: int = shared(640, 'width of the pictures, px', (DRONE,))
    height: int = shared(480, 'height of the pictures, px', (DRONE,))
    camera_rate: float = shared(30.0, 'pictures per second', (DRONE,))
    radar: str = shared(
        'serial',
        'how the radar is read, or none where a driver publishes already',
        (DRONE,),
        choices=('serial', _NONE),
    )
    radar_configuration: str = shared(
        '', 'chirp configuration (.cfg); empty takes the shipped one', (DRONE,)
    )
    radar_command_port: str = shared(
        '', 'command port; empty finds the board by its USB id', (DRONE,)
    )
    radar_data_port: str = shared('', 'data port; empty finds the board by its USB id', (DRONE,))
    simulated_radar: str = shared(
        '', 'recording of a data port that a simulated board plays, or person', (DRONE,)
    )

    @property
    def camera_driver(self) -> dict[str, Any] | None:
        """Parameters of the camera's node."""
        if self.camera == _NONE:
            return None
        return {
            'source': self.camera,
            'device': self.camera_device,
            'calibration_file': self.camera_calibration,
            'width': self.width,
            'height': self.height,
            'rate': self.camera_rate,
        }

    @property
    def radar_driver(self) -> dict[str, Any] | None:
        """Parameters of the radar's node; what is empty keeps the node's default."""
        parameters = {
            'configuration': self.radar_configuration,
            'command_port': self.radar_command_port,
            'data_port': self.radar_data_port,
            'simulated': self.simulated_radar,
        }
        given = {name: value for name, value in parameters.items() if value}
        return None if self.radar == _NONE else given


def launch_arguments(kind: type, file: str) -> list[tuple[str, str, str]]:
    """Return name, default and description of the arguments that a launch file takes."""
    return [
        (item.name, _as_text(item.default), _described(item.bounds))
        for item in options_of(kind, file)
    ]


def from_launch(kind: type[_T], file: str, values: Mapping[str, str], **more: Any) -> _T:
    """Read the arguments of a launch file.

    :param more: fields that it does not take as they are
    :raises ParameterError: for a text that says nothing, or a value outside its bounds
    """
    given = {item.name: read_option(item, values[item.name]) for item in options_of(kind, file)}
    return kind(**{**given, **more})


def read_option(item: Option, text: str) -> Any:
    """Read the value of an option from a text.

    :raises ParameterError: for anything else, or a value outside its bounds
    """
    value: Any = text
    if isinstance(item.default, bool):
        value = is_true(text)
    elif isinstance(item.default, tuple):
        value = tuple(text.split())
    elif isinstance(item.default, int | float):
        value = _number(item.name, text, type(item.default))
    check_value(item.name, item.default, item.bounds, value)
    return value


def is_true(text: str) -> bool:
    """Read a launch argument that switches something.

    :raises ParameterError: for a word that means neither on nor off
    """
    word = text.strip().lower()
    if word in ('1', 'true', 'yes', 'on'):
        return True
    if word in ('', '0', 'false', 'no', 'off'):
        return False
    raise ParameterError(f'{text!r} is neither true nor false')


def _number(name: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError as error:
        what = 'a whole number' if kind is int else 'a number'
        raise ParameterError(f'{name}:={text} is not {what}') from error


def _as_text(default: Any) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return ' '.join(default) if isinstance(default, tuple) else str(default)


def _described(bounds: ParameterBounds) -> str:
    return ': '.join(filter(None, (bounds.description, ', '.join(bounds.choices))))
