"""A memory made with networks of a user's own is searched by any words, also whole pictures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hand_made_moments import key_frame, memory_of, view
from tiny_pair import image_network, text_network, write_tiny_pair
from typer.testing import CliRunner

from mmedge_ros.commands.memory import memory_app
from mmedge_ros.encoding import EncodingError
from mmedge_ros.memory.encoders import PairEncoder, open_encoder
from mmedge_ros.memory.int4 import packed, unpacked
from mmedge_ros.memory.moment import MemoryItem
from mmedge_ros.memory.store import MemoryReader

pytest.importorskip('tokenizers', reason='the package tokenizers is not installed')

MODELS = Path(__file__).resolve().parents[2] / 'models'
# Red, green and blue of what is seen; the meadow is a key frame.
SEEN = {1: (250, 0, 0), 2: (0, 0, 250), 3: (230, 20, 220)}
MEADOW = (10, 240, 60)


def jpeg(colour: tuple[int, int, int], size: tuple[int, int] = (64, 32)) -> bytes:
    picture = np.full((*size, 3), colour[::-1], np.uint8)
    return bytes(cv2.imencode('.jpg', picture)[1])


def items() -> list[MemoryItem]:
    views = [
        view(track, 2.0 * track, thumbnail=jpeg(colour), bag_offset_ns=track)
        for track, colour in SEEN.items()
    ]
    return [*views, key_frame(9.0, thumbnail=jpeg(MEADOW, (96, 128)), bag_offset_ns=9)]


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    return write_tiny_pair(tmp_path / 'pair')


@pytest.fixture
def flight(tmp_path: Path, pair: Path) -> Path:
    encoder = PairEncoder(pair)
    folder = tmp_path / 'flight.memory'
    memory_of(folder, *encoder.embedded(items()), header=encoder.header).close()
    return folder


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(memory_app, list(map(str, words)), env={'NO_COLOR': '1'})
    return result.exit_code, result.stdout, result.stderr


def found(flight: Path, pair: Path, *words: object) -> dict[str, Any]:
    code, out, err = run('search', '--flight', flight, '--encoder', pair, '--json', *words)
    assert (code, err) == (0, '')
    answer: dict[str, Any] = json.loads(out)
    return answer


def first(answer: dict[str, Any]) -> int | None:
    track: int | None = answer['moments'][0]['track']
    return track


# ------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ('words', 'track'),
    [('umbrella', 3), ('red person', 1), ('person with an umbrella', 3), ('blue', 2)],
)
def test_words_find_what_lies_near_them_known_to_the_vocabulary_or_not(
    words: str, track: int, flight: Path, pair: Path
) -> None:
    answer = found(flight, pair, words)
    assert first(answer) == track
    assert not [note for note in answer['notes'] if 'vocabulary' in note]
    assert answer['moments'][0]['score'] > 0.9


def test_an_example_finds_what_looks_like_it(flight: Path, pair: Path, tmp_path: Path) -> None:
    (tmp_path / 'blue.jpg').write_bytes(jpeg((10, 0, 200), (300, 200)))
    assert first(found(flight, pair, '--example', tmp_path / 'blue.jpg')) == 2
    assert first(found(flight, pair, '--like', 4)) is None


def test_scores_of_two_encoders_are_not_mixed(flight: Path, pair: Path, tmp_path: Path) -> None:
    bundle = open_encoder(MODELS / 'flight_people')
    memory_of(tmp_path / 'other.memory', *bundle.embedded(items()), header=bundle.header).close()
    both = ['--flight', flight, '--flight', tmp_path / 'other.memory', '--encoder', pair]
    code, _, err = run('search', 'red', *both)
    assert (code, 'made by 2 encoders, whose scores' in err) == (1, True)
    assert run('search', '--between', '0,100', *both)[0] == 0


def test_a_memory_whose_encoder_is_not_named_says_so(flight: Path) -> None:
    for words in (['umbrella'], ['red']):
        code, _, err = run('search', *words, '--flight', flight)
        assert (code, 'is not here; name it with --encoder' in err) == (1, True)


# ------------------------------------------------------------------------------ vectors


def test_one_value_that_is_large_in_all_vectors_drowns_no_other_in_four_bits(
    tmp_path: Path,
) -> None:
    # A network whose first value is the same for all pictures, and ten times as large.
    chance = np.random.default_rng(3)
    pair = write_tiny_pair(
        tmp_path,
        files={
            'image.onnx': image_network(values=256),
            'text.onnx': text_network(values=256),
        },
    )
    encoder = PairEncoder(pair)
    made = chance.normal(size=(40, 256))
    made[:, 0] = 160.0
    made = np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)
    plain = unpacked(packed(made), 256)
    rows = iter(made)
    encoder._image.of = lambda _: next(rows)  # type: ignore[method-assign]
    blank = np.zeros((2, 2, 3), np.uint8)
    spread = np.stack([encoder.look(blank).vector for _ in made])
    kept = unpacked(packed(spread), 256)
    assert np.linalg.norm(spread, axis=1) == pytest.approx(np.ones(40), abs=1e-5)
    assert (plain[:, 1:] == 0.0).all()
    # What tells them apart is their difference from the mean.
    truth, after = made - made.mean(axis=0), kept - kept.mean(axis=0)
    order, again = truth @ truth.T, after @ after.T
    off = ~np.eye(40, dtype=bool)
    assert np.corrcoef(order[off], again[off])[0, 1] > 0.5


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'files': {'text.onnx': text_network(values=4)}}, '3 values and .* 4; export both'),
        (
            {
                'files': {
                    'image.onnx': image_network(values=1100),
                    'text.onnx': text_network(values=1100),
                }
            },
            'a memory keeps 1024 at most; take a smaller model',
        ),
        (
            {
                'section': {
                    'input': {
                        'size': [8, 6],
                        'mean': [0.0] * 3,
                        'deviation': [1.0] * 3,
                        'margin': 0.5,
                    }
                }
            },
            r'input\.margin 0\.5, and a memory keeps views with one of 0\.1; leave it out',
        ),
    ],
)
def test_networks_that_do_not_fit_together_are_refused(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(EncodingError, match=words):
        open_encoder(write_tiny_pair(tmp_path, **changes))


# ------------------------------------------------------------------------------ a flight


def test_a_recorded_flight_is_remembered_with_it(street_flight: Path, tmp_path: Path) -> None:
    pair = write_tiny_pair(tmp_path / 'pair', domain='real')
    flight = Path(shutil.copytree(street_flight, tmp_path / 'flight'))
    (tmp_path / 'empty').mkdir()
    code, _, err = run('build', flight, '--encoder', tmp_path / 'empty')
    assert (code, 'it has no manifest.yaml' in err) == (1, True)
    code, out, err = run('build', flight, '--detector', 'flight_people', '--encoder', pair)
    assert code == 0
    assert 'was trained on real pictures, and these are simulated' in err
    assert f'--flight {flight} --encoder {pair}' in err
    with MemoryReader(Path(out.strip())) as memory:
        table = memory.table()
        assert (table.manifest, table.vectors.shape[1]) == (PairEncoder(pair).header.manifest, 3)
        assert (table.integers['kind'] == 1).any()
        assert table.vectors.any(axis=1).all()
    answer = found(flight, pair, 'umbrella', '--limit', 100)
    assert len(answer['moments']) > 2
    scores = [moment['score'] for moment in answer['moments']]
    assert scores == sorted(scores, reverse=True)
