"""`mmedge memory search`: what may be asked besides words, and what it answers to nonsense."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import cv2
import hand_made_moments
import numpy as np
import pytest
from hand_made_looks import HEADER, seen
from hand_made_moments import memory_of
from typer.testing import CliRunner

from mmedge_ros.commands.memory import memory_app
from mmedge_ros.memory.encoders import LARGEST_EXAMPLE
from mmedge_ros.memory.moment import Spot

NO_NUMBERS = ['1,2', '1,2,3,4', 'a,b,c', '1,nan,3', '1,2,inf', ',,', '1,2,-3']


@pytest.fixture
def flight(tmp_path: Path) -> Path:
    """A flight with a memory: red and blue people, and a car without a known place."""
    memory_of(
        tmp_path / 'flight.memory',
        seen('person red', 1, 2.0, position=Spot(-3.0, 4.0, 0.0)),
        seen('person red', 1, 4.0, position=Spot(-3.0, 4.5, 0.0)),
        seen('person blue', 2, 7.0, position=Spot(20.0, 0.0, 0.0)),
        seen('car white', 3, 9.0, bag_offset_ns=-1),
        header=HEADER,
    ).close()
    return tmp_path / 'flight.memory'


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(memory_app, list(map(str, words)), env={'NO_COLOR': '1'})
    return result.exit_code, result.stdout, result.stderr


def tracks(flight: Path, *words: object) -> list[int]:
    code, out, err = run('search', '--flight', flight, '--json', *words)
    assert (code, err) == (0, '')
    return [moment['track'] for moment in json.loads(out)['moments']]


def test_a_place_on_the_map_leaves_what_was_within_its_radius(flight: Path) -> None:
    assert tracks(flight, '--near', '-3,4,0.4') == [1]
    assert tracks(flight, '--near', '18,0,2.1') == [2]
    assert tracks(flight, 'person', '--near', '0,0,50') == [1, 2]


def test_a_span_counts_from_the_begin_of_the_recording(flight: Path) -> None:
    assert tracks(flight, '--between', '0,4') == [1]
    assert tracks(flight, '--between', '3.9,8') == [1, 2]
    code, _, err = run('search', '--flight', flight, '--between', '0,100')
    assert code == 0
    assert '1 views without a known place in a recording are left out' in err


def test_other_programs_read_moments_with_times_places_and_notes(flight: Path) -> None:
    _, out, _ = run('search', 'red person', '--flight', flight, '--json', '--limit', 1)
    found = json.loads(out)
    (moment,) = found['moments']
    assert moment['in_recording_s'] == [2.0, 4.0]
    assert moment['place_m'][:2] == [-3.0, 4.0]
    assert moment['views'] == [1, 2]
    assert (moment['flight'], moment['label'], found['stored']) == ('flight', 'person', 4)
    assert 'none of them says that something was not there' in found['notes'][-1]
    _, out, _ = run('search', 'car', '--flight', flight, '--json')
    (moment,) = json.loads(out)['moments']
    assert (moment['in_recording_s'], moment['place_m']) == (None, [None] * 3)


def test_a_picture_brings_up_what_looks_like_it(flight: Path, tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / 'dark.png'), np.full((96, 64, 3), 30, np.uint8))
    code, out, _ = run('search', '--flight', flight, '--json', '--example', tmp_path / 'dark.png')
    assert code == 0
    moments = json.loads(out)['moments']
    assert len(moments) == 3
    by_kind = {moment['track']: moment['score'] for moment in moments}
    assert by_kind[1] > by_kind[2]


def huge_png() -> bytes:
    """The header of a picture that would not fit into any memory."""
    size = struct.pack('>II', 60000, 60000)
    return b'\x89PNG\r\n\x1a\n' + struct.pack('>I', 13) + b'IHDR' + size + b'\0' * 9 + b'IEND'


@pytest.mark.parametrize(
    ('content', 'reason'),
    [
        (b'', 'no data'),
        (b'a poem about a picture', 'only jpeg and png'),
        (b'\xff\xd8 this ends soon', 'jpg or png'),
        (huge_png(), '60000'),
        (b'\xff\xd8' + bytes(LARGEST_EXAMPLE), 'larger than'),
    ],
)
def test_a_file_that_is_no_picture_is_said_in_one_sentence(
    flight: Path, tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / 'example.png'
    path.write_bytes(content)
    code, out, err = run('search', '--flight', flight, '--example', path)
    assert (code, out) == (1, '')
    assert reason in err
    assert 'name a jpg or png' in err
    assert len(err.splitlines()) == 1


def test_one_picture_is_not_compared_with_vectors_of_two_bundles(
    flight: Path, tmp_path: Path
) -> None:
    memory_of(tmp_path / 'other.memory', hand_made_moments.view()).close()
    cv2.imwrite(str(tmp_path / 'grey.png'), np.full((8, 8, 3), 90, np.uint8))
    other = ['--flight', tmp_path / 'other.memory']
    code, _, err = run('search', '--flight', flight, *other, '--example', tmp_path / 'grey.png')
    assert (code, 'made by 2 bundles' in err) == (1, True)
