"""The launch files yield the very nodes that `mmedge up` starts.

launch and launch_ros are only there on a ROS machine; small stand-ins take their place.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from mmedge_ros.core.parameter import ParameterError, build
from mmedge_ros.ros.graph import launch_actions
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.options import GraphOptions, RecordOptions
from mmedge_ros.ros.graph.perception_graph import describe_graph
from mmedge_ros.ros.messages import names
from mmedge_ros.ros.nodes.bag_recorder import BagRecorderParameters
from mmedge_ros.ros.nodes.radar import RadarNodeParameters
from mmedge_ros.ros.recording.run import recorder_node
from mmedge_ros.sensing.camera.device import CameraParameters

LAUNCH = Path(__file__).resolve().parents[2] / 'launch'


class Recorded:
    """A launch action that keeps what it was made with."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.arguments = arguments
        self.options = options


KINDS = {
    'launch': ('LaunchDescription',),
    'launch.actions': (
        *('DeclareLaunchArgument', 'LogInfo', 'OpaqueFunction', 'SetEnvironmentVariable'),
    ),
    'launch_ros': (),
    'launch_ros.actions': ('Node',),
}
# Classes by their names.
MADE = {name: type(name, (Recorded,), {}) for kinds in KINDS.values() for name in kinds}


class LaunchConfiguration:
    """launch.substitutions.LaunchConfiguration; the context is a mapping here."""

    def __init__(self, name: str) -> None:
        self._name = name

    def perform(self, context: dict[str, str]) -> str:
        return context[self._name]


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Run a launch file with arguments, as `ros2 launch` does; returns all its actions."""
    stand_ins: dict[str, dict[str, Any]] = {
        module: {name: MADE[name] for name in kinds} for module, kinds in KINDS.items()
    }
    stand_ins['launch.substitutions'] = {'LaunchConfiguration': LaunchConfiguration}
    for name, content in stand_ins.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(launch_actions, 'is_installed', lambda _: True)

    def run(name: str, **values: str) -> list[Any]:
        spec = importlib.util.spec_from_file_location('launch_file', LAUNCH / name)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        (entities,) = module.generate_launch_description().arguments
        declared = {
            e.arguments[0]: e.options['default_value']
            for e in entities
            if isinstance(e, MADE['DeclareLaunchArgument'])
        }
        assert values.keys() <= declared.keys()
        (function,) = (e for e in entities if isinstance(e, MADE['OpaqueFunction']))
        return [*entities, *function.options['function'](declared | values)]

    return run


def options_of(actions: list[Any], kind: str = 'Node') -> list[dict[str, Any]]:
    return [a.options for a in actions if isinstance(a, MADE[kind])]


def as_launched(node: NodeDescription) -> dict[str, Any]:
    return {
        'package': node.package,
        'executable': node.executable,
        'name': node.name,
        'namespace': '',
        'arguments': list(node.arguments),
        'parameters': [dict(node.parameters)] if node.parameters else [],
        'ros_arguments': ['--log-level', 'info'],
        'remappings': list(node.remappings),
        'respawn': True,
        'respawn_delay': 1.0,
        'on_exit': launch_actions._leave_down,
        'output': 'screen',
    }


def test_a_replay_is_the_graph_of_mmedge_up(
    launch: Callable[..., list[Any]], little_bag: Path, detector: Path
) -> None:
    actions = launch(
        'replay.launch.py', bag=str(little_bag), detector=str(detector), rate='2.0', loop='true'
    )
    options = GraphOptions(bag=str(little_bag), detector=str(detector), rate=2.0, loop=True)
    assert options_of(actions) == [as_launched(node) for node in describe_graph(options)]


def test_the_drone_is_the_graph_of_mmedge_up_beside_drivers(
    launch: Callable[..., list[Any]], detector: Path
) -> None:
    actions = launch(
        'perception.launch.py',
        camera='/front/image_raw',
        radar='/ti/points',
        odometry='/mavros/odom',
        detector=str(detector),
        use_sim_time='true',
    )
    options = GraphOptions(
        detector=str(detector),
        camera='/front/image_raw',
        radar='/ti/points',
        odometry='/mavros/odom',
        clock=True,
    )
    assert options_of(actions) == [as_launched(node) for node in describe_graph(options)]


def test_the_demo_loops_a_recording_beside_rviz(
    launch: Callable[..., list[Any]], little_bag: Path, data_folder: Path
) -> None:
    bag = str(little_bag)
    *graph, rviz = options_of(launch('demo.launch.py', bag=bag))
    options = GraphOptions(bag=bag, loop=True)
    assert graph == [as_launched(node) for node in describe_graph(options)]
    assert (rviz['package'], rviz['executable'], rviz['respawn']) == ('rviz2', 'rviz2', False)
    assert Path(rviz['arguments'][1]).is_file()
    assert len(options_of(launch('demo.launch.py', bag=bag, rviz='false'))) == len(graph)


def test_the_drone_has_its_own_drivers_and_transforms(
    launch: Callable[..., list[Any]], detector: Path
) -> None:
    actions = launch(
        'drone.launch.py',
        camera_device='/dev/mmedge_camera',
        camera_rate='15.0',
        radar_configuration='mine.cfg',
        odometry='/mavros/odom',
        detector=str(detector),
    )
    by_name = {node['name']: node for node in options_of(actions)}
    assert list(by_name) == [
        'fusion',
        'camera_encoder',
        'radar_encoder',
        'visualizer',
        'configuration_optimizer',
        'monitor',
        'camera',
        'radar',
        'transform_of_radar_link',
        'transform_of_camera_color_optical_frame',
    ]
    (camera,) = by_name['camera']['parameters']
    build(CameraParameters, {k: v for k, v in camera.items() if k != 'use_sim_time'})
    assert (camera['device'], camera['rate']) == ('/dev/mmedge_camera', 15.0)
    (radar,) = by_name['radar']['parameters']
    assert radar == {'configuration': 'mine.cfg'}
    build(RadarNodeParameters, {'configuration': radar['configuration']})
    # Battery and heat bound what is sensed, whether rates and levels are chosen or not.
    (bounds,) = by_name['configuration_optimizer']['parameters']
    assert bounds['optimise'] is False
    (fusion,) = by_name['fusion']['parameters']
    assert [text.split()[:2] for text in fusion['transforms']] == [
        ['base_link', 'radar_link'],
        ['base_link', 'camera_color_optical_frame'],
    ]
    static = by_name['transform_of_camera_color_optical_frame']
    assert (static['package'], static['executable']) == ('tf2_ros', 'static_transform_publisher')
    words = static['arguments']
    assert dict(zip(words[::2], words[1::2], strict=True))['--child-frame-id'] == (
        'camera_color_optical_frame'
    )
    assert dict(by_name['fusion']['remappings'])['odom'] == '/mavros/odom'


def test_a_namespace_a_log_level_and_one_parameter_file_reach_all_nodes(
    launch: Callable[..., list[Any]], detector: Path, tmp_path: Path
) -> None:
    mine = tmp_path / 'mine.yaml'
    mine.write_text('')
    actions = launch(
        'drone.launch.py',
        detector=str(detector),
        namespace='drone1',
        log_level='debug',
        params=str(mine),
    )
    for node in options_of(actions):
        assert (node['namespace'], node['ros_arguments']) == ('drone1', ['--log-level', 'debug'])
        ours = node['package'] == 'mmedge_ros'
        assert node['parameters'][-1:] == ([str(mine)] if ours else [])


def test_frames_of_a_drone_have_its_prefix_and_no_node_is_told_to_follow_a_clock(
    launch: Callable[..., list[Any]], detector: Path, tmp_path: Path
) -> None:
    actions = launch(
        'drone.launch.py',
        detector=str(detector),
        frame_prefix='drone1/',
        questions='true',
        memory=str(tmp_path / 'flight.memory'),
        view='true',
        record=str(tmp_path / 'flight'),
        rviz='true',
    )
    by_name = {node['name']: node for node in options_of(actions)}
    for name in ('fusion', 'memory', 'questions', 'viewer'):
        assert by_name[name]['parameters'][0]['frame_prefix'] == 'drone1/'
    assert by_name['camera']['parameters'][0]['frame_id'] == 'drone1/camera_color_optical_frame'
    assert by_name['radar']['parameters'][0]['frame_id'] == 'drone1/radar_link'
    words = by_name['transform_of_drone1_radar_link']['arguments']
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert (given['--frame-id'], given['--child-frame-id']) == (
        'drone1/base_link',
        'drone1/radar_link',
    )
    (recorder,) = by_name['bag_recorder']['parameters']
    assert recorder['transforms'][0].startswith('drone1/base_link drone1/radar_link ')
    assert by_name['rviz2']['arguments'][-2:] == ['-f', 'drone1/radar_link']
    # It would overrule SetParameter('use_sim_time', True) of a launch file around ours.
    assert not any('use_sim_time' in p for node in by_name.values() for p in node['parameters'])


def test_rviz_shows_the_view_of_the_package_in_a_frame(
    launch: Callable[..., list[Any]],
) -> None:
    (rviz,) = options_of(launch('rviz.launch.py', fixed_frame='odom', use_sim_time='true'))
    flag, view, *frame = rviz['arguments']
    assert (flag, frame) == ('-d', ['-f', 'odom'])
    assert rviz['parameters'] == [{'use_sim_time': True}]
    displays = yaml.safe_load(Path(view).read_text())['Visualization Manager']['Displays']
    shown = {d['Topic']['Value'] for d in displays if 'Topic' in d}
    assert shown == {
        names.MARKERS,
        names.STATUS_MARKER,
        names.RADAR_POINTS,
        names.ANNOTATED_IMAGE,
        names.CAMERA_IMAGE,
    }
    (returns,) = (d for d in displays if d['Class'].endswith('PointCloud2'))
    assert returns['Channel Name'] == 'velocity'


def test_a_recording_is_that_of_mmedge_record(
    launch: Callable[..., list[Any]], tmp_path: Path
) -> None:
    out = tmp_path / 'flight'
    actions = launch(
        'record.launch.py', out=str(out), topics='a b', split_size='7', camera='/front/image_raw'
    )
    options = RecordOptions(
        out=str(out), topics=('a', 'b'), split_size=7, camera='/front/image_raw'
    )
    expected = as_launched(recorder_node(options)) | {'respawn': False}
    assert options_of(actions) == [expected]
    parameters = dict(expected['parameters'][0])
    build(BagRecorderParameters, {k: v for k, v in parameters.items() if v != ['']})


@pytest.mark.parametrize(
    ('name', 'values', 'words'),
    [
        ('drone.launch.py', {'width': 'wide'}, 'width:=wide is not a whole number'),
        ('drone.launch.py', {'camera_rate': 'fast'}, 'camera_rate:=fast is not a number'),
        ('drone.launch.py', {'extrinsics': '/no/such.yaml'}, '/no/such.yaml'),
        ('drone.launch.py', {'camera': 'usb'}, "'camera' is 'usb'; choose one of v4l2"),
        ('drone.launch.py', {'radar': 'ti'}, "'radar' is 'ti'; choose one of serial"),
        (
            'drone.launch.py',
            {'image_transport': 'png'},
            "'image_transport' is 'png'; choose one of raw",
        ),
        ('drone.launch.py', {'use_sim_time': 'ture'}, "'ture' is neither true nor false"),
        ('replay.launch.py', {'bag': 'x', 'rate': 'x'}, 'rate:=x is not a number'),
        ('replay.launch.py', {}, 'name the recording: bag:=FOLDER'),
        ('drone.launch.py', {'params': 'no.yaml'}, 'params:=no.yaml: there is no such file'),
        ('record.launch.py', {}, 'name the folder to be made'),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(
    launch: Callable[..., list[Any]], name: str, values: dict[str, str], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        launch(name, **values)


def test_what_is_not_installed_is_left_out_and_named(
    launch: Callable[..., list[Any]], detector: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = 'mmedge_ros'
    monkeypatch.setattr(launch_actions, 'is_installed', lambda part: part.package == ours)
    actions = launch('drone.launch.py', detector=str(detector), rviz='true')
    assert {node['package'] for node in options_of(actions)} == {ours}
    assert [log['msg'] for log in options_of(actions, 'LogInfo')] == [
        'tf2_ros is not installed: going without it',
        'rviz2 is not installed: going without it',
    ]
    with pytest.raises(ParameterError, match=r'^rviz2 is not installed$'):
        launch('rviz.launch.py')


@pytest.fixture
def usual_interrupt() -> Iterator[None]:
    """Python's own handler of Ctrl-C, before and after."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures('usual_interrupt')
def test_while_launch_runs_its_loop_alone_hears_of_an_interrupt() -> None:
    context = SimpleNamespace(asyncio_loop='running')
    launch_actions.take_interrupts_in_loop(context)
    signal.raise_signal(signal.SIGINT)
    context.asyncio_loop = None
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
