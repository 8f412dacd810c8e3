"""Networks for pictures and words: exports of many makers, and files that are none."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto
from tiny_pair import LENGTH, SIZE, image_network, text_network, tokenizer, write_tiny_pair

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.image_text_pair import ImageNetwork, TextNetwork
from mmedge_ros.encoding.pair_description import PairDescription, describe_pair

needs_tokenizers = pytest.mark.skipif(
    find_spec('tokenizers') is None, reason='the package tokenizers is not installed'
)
WIDTH, HEIGHT = SIZE
FIXED = {'shape': (1, 3, HEIGHT, WIDTH)}


def pair_of(folder: Path, **changes: Any) -> PairDescription:
    found = describe_pair(write_tiny_pair(folder, **changes))
    assert found is not None
    return found


def painted(blue: int, green: int, red: int, size: tuple[int, int] = (12, 20)) -> np.ndarray:
    return np.full((*size, 3), (blue, green, red), np.uint8)


@pytest.mark.parametrize(
    'export',
    [
        {},
        {'name': 'input'},
        FIXED,
        {'kind': TensorProto.FLOAT16},
        {'shape': (1, 3, 'height', 'width')},
    ],
)
def test_pictures_become_vectors_of_length_1(export: dict[str, Any], tmp_path: Path) -> None:
    pair = pair_of(tmp_path, files={'image.onnx': image_network(**export)})
    vector = ImageNetwork(pair).of(painted(0, 30, 40))
    assert vector == pytest.approx([0.8, 0.6, 0.0], abs=1e-2)
    assert vector.dtype == np.float32


@pytest.mark.parametrize('side', [(20, 10), (10, 20), (20, 19)])
def test_a_picture_that_is_not_square_is_filled_with_the_mean_colour(
    side: tuple[int, int], tmp_path: Path
) -> None:
    pixels = {'size': [20, 20], 'mean': [1.0, 0.0, 0.0], 'deviation': [1.0, 1.0, 1.0]}
    pair = pair_of(tmp_path, section={'input': {**pixels, 'square': True}})
    # What is filled in counts as nothing, so only the green of the picture is left.
    vector = ImageNetwork(pair).of(painted(0, 255, 255, side))
    assert vector == pytest.approx([0.0, 1.0, 0.0], abs=1e-3)


@pytest.mark.parametrize(
    ('export', 'words'),
    [
        (
            {'shape': (1, 3, 9, 8)},
            r"takes 'pixel_values' of shape \[1, 3, 9, 8\].* \[1, 3, 6, 8\]",
        ),
        ({'shape': (4, 3, 6, 8)}, 'export it with a batch of 1'),
        ({'kind': TensorProto.INT64}, r'tensor\(int64\), and the manifest asks for'),
    ],
)
def test_an_image_network_that_takes_something_else_is_refused(
    export: dict[str, Any], words: str, tmp_path: Path
) -> None:
    pair = pair_of(tmp_path, files={'image.onnx': image_network(**export)})
    with pytest.raises(EncodingError, match=words):
        ImageNetwork(pair)


def test_values_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    pixels = {'size': list(SIZE), 'mean': [0.0, 0.0, 0.0], 'deviation': [0.1, 0.1, 0.1]}
    files = {'image.onnx': image_network(factor=1e38)}
    network = ImageNetwork(pair_of(tmp_path, files=files, section={'input': pixels}))
    with pytest.raises(EncodingError, match='puts out what is no number; export it in float32'):
        network.of(painted(255, 255, 255))


# ------------------------------------------------------------------------------ words


@needs_tokenizers
@pytest.mark.parametrize(
    'export',
    [
        {},
        {'mask': ''},
        {'name': 'text', 'mask': '', 'shape': (1, LENGTH), 'kind': TensorProto.INT32},
        {'shape': ('batch', LENGTH), 'output': 'pooler_output'},
    ],
)
def test_words_lie_where_their_colour_does(export: dict[str, Any], tmp_path: Path) -> None:
    network = TextNetwork(pair_of(tmp_path, files={'text.onnx': text_network(**export)}))
    assert network.of('umbrella') == pytest.approx([0.5**0.5, 0.0, 0.5**0.5], abs=1e-3)
    assert network.of('red green') == pytest.approx([0.5**0.5, 0.5**0.5, 0.0], abs=1e-3)


@needs_tokenizers
@pytest.mark.parametrize(
    ('files', 'words'),
    [
        ({'text.onnx': text_network(name='ids')}, "takes 'ids', 'attention_mask'; the text"),
        ({'text.onnx': text_network(mask='token_type_ids')}, 'token_type_ids'),
        ({'text.onnx': text_network(shape=(1, 77))}, r'asks for \[1, 5\]'),
        ({'text.onnx': text_network(kind=TensorProto.FLOAT16)}, 'cannot be opened|float16'),
        ({'text.onnx': b'a poem'}, 'it must be a complete ONNX file'),
        ({'tokenizer.json': b'{}'}, 'name the tokenizer.json that belongs'),
        ({'tokenizer.json': b'\xff\xfe'}, 'name the tokenizer.json that belongs'),
        ({'tokenizer.json': b''}, 'are empty'),
        ({'tokenizer.json': tokenizer(model={'type': 'None'})}, 'name the tokenizer.json'),
    ],
)
def test_files_that_are_no_text_network_are_refused(
    files: dict[str, bytes], words: str, tmp_path: Path
) -> None:
    pair = pair_of(tmp_path, files=files)
    with pytest.raises(EncodingError, match=words):
        TextNetwork(pair)


# Its package panics on these, which is no Exception.
@needs_tokenizers
@pytest.mark.parametrize(
    'changes',
    [
        {'pre_tokenizer': {'type': 'FixedLength', 'length': 0}},
        {'normalizer': {'type': 'Precompiled', 'precompiled_charsmap': 'AAAA'}},
    ],
)
def test_a_tokenizer_that_panics_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    pair = pair_of(tmp_path, files={'tokenizer.json': tokenizer(**changes)})
    with pytest.raises(EncodingError, match=r'tokenizer\.json cannot'):
        TextNetwork(pair).of('red')


@pytest.fixture(scope='module')
def words_network(tmp_path_factory: pytest.TempPathFactory) -> TextNetwork:
    return TextNetwork(pair_of(tmp_path_factory.mktemp('pair')))


@needs_tokenizers
@given(st.text(max_size=60))
def test_any_words_have_a_place(words_network: TextNetwork, words: str) -> None:
    vector = words_network.of(words)
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) <= 1.0 + 1e-5


def test_large_values_have_a_length_too(tmp_path: Path) -> None:
    pair = pair_of(tmp_path, files={'image.onnx': image_network(factor=1e38)})
    assert ImageNetwork(pair).of(painted(0, 30, 40)) == pytest.approx([0.8, 0.6, 0.0], abs=1e-2)


@needs_tokenizers
def test_a_text_is_filled_up_with_what_the_manifest_says(tmp_path: Path) -> None:
    blue = {'tokens': {'length': LENGTH, 'pad': 4}}
    files = {'text.onnx': text_network(mask='')}
    without = TextNetwork(pair_of(tmp_path, files=files, section={**blue, 'prompt': None}))
    assert without.of('red') == pytest.approx(np.array([1.0, 0.0, 4.0]) / 17**0.5, abs=1e-3)
    assert TextNetwork(pair_of(tmp_path, section=blue)).of('red')[2] == 0.0


@needs_tokenizers
def test_a_long_text_is_cut(tmp_path: Path) -> None:
    network = TextNetwork(pair_of(tmp_path, section={'prompt': None}))
    assert network.of('red ' * LENGTH + 'blue ' * 90) == pytest.approx([1.0, 0.0, 0.0])
