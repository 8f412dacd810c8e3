"""What is written for the hardware agrees with the code: udev rules, extrinsics, commands."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.transforms import TransformTree, parse_static_transform
from mmedge_ros.ros.graph.perception_graph import read_extrinsics, simulated_radar, video_camera
from mmedge_ros.ros.nodes.radar import RadarNodeParameters
from mmedge_ros.sensing.camera.device import CameraParameters
from mmedge_ros.sensing.radar.serial_ports import find_radar_ports

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / 'config/udev/70-mmedge.rules'
RULE = re.compile(r'[A-Z_]+(\{[A-Za-z_/]+\})?(==|!=|=|\+=)"[^"]*"')


def port(vendor: int, product: int, interface: int) -> Any:
    """Return a port as pyserial lists it."""
    return SimpleNamespace(
        device=f'/dev/ttyACM{interface}',
        vid=vendor,
        pid=product,
        serial_number='R001',
        location=f'1-2:1.{interface}',
    )


def rules() -> list[dict[str, str]]:
    """Each rule as its keys and values; every part must be written as udev has it."""
    found = []
    for line in RULES.read_text().splitlines():
        if not line or line.startswith('#'):
            continue
        parts = line.split(', ')
        assert all(RULE.fullmatch(part) for part in parts), line
        pairs = (re.split('==|!=|[+]=|=', part, maxsplit=1) for part in parts)
        found.append({key: value.strip('"') for key, value in pairs})
    return found


def test_the_rules_name_the_ports_that_the_driver_finds_and_open_nothing_to_everybody() -> None:
    for rule in rules():
        assert rule['SUBSYSTEM'] in ('tty', 'video4linux', 'usb')
        assert rule.get('MODE', '0660') == '0660'
    links = {
        (int(r['ENV{ID_VENDOR_ID}'], 16), int(r['ENV{ID_MODEL_ID}'], 16), r['SYMLINK']): int(
            r['ENV{ID_USB_INTERFACE_NUM}'], 16
        )
        for r in rules()
        if r.get('SUBSYSTEM') == 'tty' and 'SYMLINK' in r
    }
    boards = {key[:2] for key in links}
    assert len(boards) == 2
    for vendor, product in boards:
        command = links[vendor, product, 'mmedge_radar_command']
        data = links[vendor, product, 'mmedge_radar_data']
        ports = find_radar_ports([port(vendor, product, number) for number in (data, command)])
        assert ports == (f'/dev/ttyACM{command}', f'/dev/ttyACM{data}')


def test_the_shipped_extrinsics_connect_both_sensors_with_the_rig() -> None:
    path = ROOT / 'config/extrinsics.yaml'
    assert read_calibration(path).camera is None
    tree = TransformTree(parse_static_transform(text) for text in read_extrinsics(path))
    frames = (CameraParameters().frame_id, RadarNodeParameters().frame_id)
    for frame in frames:
        tree.lookup('base_link', frame)
    # What is straight ahead of the radar is straight ahead of the camera.
    ahead = tree.lookup(*frames).rotate([1.0, 0.0, 0.0])
    assert ahead == pytest.approx([0.0, 0.0, 1.0], abs=1e-9)


def test_a_file_without_transforms_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'camera.yaml'
    path.write_text(
        'image_width: 64\nimage_height: 48\n'
        'camera_matrix: {rows: 3, cols: 3, data: [50, 0, 32, 0, 50, 24, 0, 0, 1]}\n'
    )
    with pytest.raises(GeometryError, match='holds no transforms'):
        read_extrinsics(path)


def test_stand_ins_for_sensors_are_described_by_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    film = str(tmp_path / 'film.mp4')
    assert video_camera('film.mp4') == {'source': 'file', 'device': film, 'loop': True}
    assert simulated_radar('capture.dat') == {'simulated': str(tmp_path / 'capture.dat')}
    assert simulated_radar('person') == {'simulated': 'person'}
