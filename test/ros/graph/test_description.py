"""The one description of the graph, and what a process gets of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mmedge_ros.core.parameter import ParameterError
from mmedge_ros.encoding import EncodingError
from mmedge_ros.ros.graph.description import (
    NodeDescription,
    process_arguments,
)
from mmedge_ros.ros.graph.middleware_profile import node_environment, profile_environment
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import describe_graph, perception_graph


def parameters_of(nodes: list[NodeDescription], name: str) -> dict[str, object]:
    (node,) = (node for node in nodes if node.name == name)
    return dict(node.parameters)


@pytest.mark.parametrize(
    ('options', 'simulated'),
    [
        (GraphOptions(), False),
        (GraphOptions(clock=True), True),
        (GraphOptions(rate=0.5), True),
    ],
)
def test_all_nodes_are_on_the_same_clock(options: GraphOptions, simulated: bool) -> None:
    nodes = perception_graph(options)
    assert [node.parameters.get('use_sim_time', False) for node in nodes] == [simulated] * 4


def test_there_is_an_encoder_for_each_modality_and_fusion_expects_them() -> None:
    nodes = perception_graph(GraphOptions(modalities=('radar',), visualizer=False))
    assert [node.name for node in nodes] == ['fusion', 'radar_encoder']
    assert parameters_of(nodes, 'fusion')['pipeline.modalities'] == ['radar']


def test_the_live_page_is_there_on_demand_and_knows_where_the_sensors_sit() -> None:
    assert 'viewer' not in {node.name for node in perception_graph(GraphOptions())}
    options = GraphOptions(
        view=9000,
        calibration='c.yaml',
        transforms=('a b 0 0 0 0 0 0 1',),
        image_transport='compressed',
        camera='/front/image_raw',
    )
    nodes = perception_graph(options)
    (viewer,) = (node for node in nodes if node.name == 'viewer')
    fusion = parameters_of(nodes, 'fusion')
    assert viewer.parameters['port'] == 9000
    assert viewer.parameters['image_transport'] == 'compressed'
    for name in ('calibration_file', 'transforms', 'use_sim_time'):
        assert viewer.parameters.get(name) == fusion.get(name)
    assert viewer.remappings == (
        ('camera/image', '/front/image_raw'),
        ('camera/image/compressed', '/front/image_raw/compressed'),
        ('camera/camera_info', '/front/camera_info'),
    )


def test_a_process_gets_name_remappings_parameters_and_files(tmp_path: Path) -> None:
    node = NodeDescription(
        'subject', 'visualizer', {'colour': 'red', 'size.width': 2.0}, [('a', 'b')]
    )
    assert process_arguments(node, tmp_path, [Path('more.yaml')]) == [
        '--ros-args',
        '-r',
        '__node:=subject',
        '-r',
        'a:=b',
        '--params-file',
        str(tmp_path / 'subject.yaml'),
        '--params-file',
        'more.yaml',
    ]
    written = yaml.safe_load((tmp_path / 'subject.yaml').read_text())
    assert written == {'subject': {'ros__parameters': {'colour': 'red', 'size.width': 2.0}}}


def test_a_recording_brings_its_topics_transforms_and_transport(
    little_bag: Path, detector: Path
) -> None:
    mine = 'base_link radar_link 0 0 0 0 0 0 1'
    options = GraphOptions(bag=str(little_bag), detector=str(detector), transforms=(mine,))
    nodes = describe_graph(options)
    player, fusion = parameters_of(nodes, 'bag_player'), parameters_of(nodes, 'fusion')
    assert player['topics.camera'] == '/camera/image_raw/compressed'
    assert player['topics.radar'] == '/radar/points'
    # Those of the user come on top, and what fusion uses is published as well.
    recorded, last = fusion['transforms']  # type: ignore[misc]
    assert recorded.startswith('radar_link camera_optical_frame 0 -0.07 -0.05 ')
    assert last == mine
    assert player['transforms'] == fusion['transforms']
    assert fusion['publish_transform'] is True
    flown = describe_graph(GraphOptions(detector=str(detector)))
    assert parameters_of(flown, 'fusion')['publish_transform'] is False


def test_player_and_optimiser_are_told_of_other_windows_and_a_wrong_key_is_found_at_once(
    little_bag: Path, detector: Path, tmp_path: Path
) -> None:
    params = tmp_path / 'params.yaml'
    options = GraphOptions(
        bag=str(little_bag), detector=str(detector), params=str(params), optimise=True
    )
    windows = 'pipeline.windows: {stride: 0.25, window: 2.0}'
    params.write_text(f'fusion:\n  ros__parameters:\n    {windows}\n')
    described = describe_graph(options)
    assert parameters_of(described, 'bag_player')['pipeline.windows.stride'] == 0.25
    chooses = parameters_of(described, 'configuration_optimizer')
    assert (chooses['adaptation.stride'], chooses['adaptation.window']) == (0.25, 2.0)
    params.write_text('fusion:\n  ros__parameters:\n    pipeline.windows.strde: 0.25\n')
    with pytest.raises(ParameterError, match=r'windows\.stride'):
        describe_graph(options)


def test_without_any_detector_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('MMEDGE_DATA', raising=False)
    monkeypatch.setattr('mmedge_ros.encoding.bundle.default_model._SHIPPED', ())
    for name in ('AMENT_PREFIX_PATH', 'XDG_DATA_HOME'):
        monkeypatch.setenv(name, '/nowhere')
    with pytest.raises(EncodingError, match='--detector'):
        describe_graph(GraphOptions())


def test_a_profile_is_found_in_the_install_or_in_the_sources(tmp_path: Path) -> None:
    found = profile_environment({})['FASTDDS_DEFAULT_PROFILES_FILE']
    assert found.endswith('config/fastdds.xml')
    installed = tmp_path / 'share/mmedge_ros/config/fastdds.xml'
    installed.parent.mkdir(parents=True)
    installed.touch()
    given = {'AMENT_PREFIX_PATH': f'/nowhere:{tmp_path}', 'ROS_DISTRO': 'jazzy'}
    found = profile_environment(given)['FASTRTPS_DEFAULT_PROFILES_FILE']
    assert found == str(installed)


@pytest.mark.parametrize(
    ('told', 'chosen'), [('', 'SYSTEM_DEFAULT'), ('LOCALHOST', 'SYSTEM_DEFAULT'), ('SUBNET', None)]
)
def test_the_local_profile_alone_says_how_far_nodes_reach(told: str, chosen: str | None) -> None:
    variable = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
    assert profile_environment({variable: told} if told else {}).get(variable) == chosen


def test_the_network_has_a_profile_of_its_own_and_the_reach_that_ros_is_told() -> None:
    (variable,) = profile_environment({}, network=True).items()
    assert variable[0] == 'FASTDDS_DEFAULT_PROFILES_FILE'
    assert variable[1].endswith('config/fastdds_network.xml')
    assert 'interfaceWhiteList' not in Path(variable[1]).read_text()


def test_nodes_keep_the_memory_of_pictures_unless_the_user_says_otherwise() -> None:
    name = 'MALLOC_MMAP_THRESHOLD_'
    # More than a 4K picture of three bytes per pixel.
    assert int(node_environment({})[name]) > 3840 * 2160 * 3
    assert name not in node_environment({name: '1000'})
    chosen = node_environment({'FASTDDS_DEFAULT_PROFILES_FILE': 'mine.xml'})
    assert name in chosen
    assert 'FASTDDS_DEFAULT_PROFILES_FILE' not in chosen
