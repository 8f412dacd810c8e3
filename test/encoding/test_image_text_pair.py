"""Networks for pictures and words: exports of many makers, and files that are none."""

from __future__ import annotations

import sys
from hashlib import sha256
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


def test_a_network_of_words_and_pictures_at_once_is_refused_by_its_inputs(tmp_path: Path) -> None:
    pair = pair_of(tmp_path, files={'image.onnx': text_network()})
    with pytest.raises(EncodingError, match="takes 'input_ids', 'attention_mask'; the image"):
        ImageNetwork(pair)


def test_values_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    pixels = {'size': list(SIZE), 'mean': [0.0, 0.0, 0.0], 'deviation': [0.1, 0.1, 0.1]}
    files = {'image.onnx': image_network(factor=1e38)}
    network = ImageNetwork(pair_of(tmp_path, files=files, section={'input': pixels}))
    with pytest.raises(EncodingError, match='puts out what is no number; export it in float32'):
        network.of(painted(255, 255, 255))


def test_large_values_have_a_length_too(tmp_path: Path) -> None:
    pair = pair_of(tmp_path, files={'image.onnx': image_network(factor=1e38)})
    assert ImageNetwork(pair).of(painted(0, 30, 40)) == pytest.approx([0.8, 0.6, 0.0], abs=1e-2)


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


@needs_tokenizers
def test_a_word_that_the_text_network_has_no_place_for_is_said(tmp_path: Path) -> None:
    model = {'type': 'WordLevel', 'vocab': {'far': 4_000_000, '[UNK]': 1}, 'unk_token': '[UNK]'}
    network = TextNetwork(pair_of(tmp_path, files={'tokenizer.json': tokenizer(model=model)}))
    with pytest.raises(EncodingError, match=r'text.onnx failed'):
        network.of('far')


@needs_tokenizers
def test_marks_around_a_text_that_leave_no_room_are_said(tmp_path: Path) -> None:
    marks = {'type': 'BertProcessing', 'sep': ['blue', 4], 'cls': ['blue', 4]}
    files = {'tokenizer.json': tokenizer(post_processor=marks)}
    pair = pair_of(tmp_path, files=files, section={'tokens': {'length': 1}})
    with pytest.raises(EncodingError, match=r'tokens\.length is 1; enter the length'):
        TextNetwork(pair).of('red')


@pytest.mark.parametrize('name', ['image.onnx', 'text.onnx', 'tokenizer.json'])
@needs_tokenizers
def test_another_file_than_that_of_the_manifest_is_not_opened(name: str, tmp_path: Path) -> None:
    pair = pair_of(tmp_path)
    half = ImageNetwork if name == 'image.onnx' else TextNetwork
    with (tmp_path / name).open('ab') as file:
        file.write(b' ')
    with pytest.raises(EncodingError, match=rf'{name} has SHA-256 .* fetch the bundle again'):
        half(pair)
    (tmp_path / name).unlink()
    with pytest.raises(EncodingError, match=rf'{name} do not exist; check the path'):
        half(pair)


def test_weights_that_could_run_code_are_not_opened(tmp_path: Path) -> None:
    content = image_network()
    (tmp_path / 'image.pt').write_bytes(content)
    image = {'weights': 'image.pt', 'sha256': sha256(content).hexdigest()}
    with pytest.raises(EncodingError, match=r"end in '\.pt'; accepted are \.onnx files"):
        ImageNetwork(pair_of(tmp_path, section={'image': image}))


def test_a_missing_package_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'tokenizers', None)
    with pytest.raises(EncodingError, match='pip install tokenizers'):
        TextNetwork(pair_of(tmp_path))


@pytest.fixture(scope='module')
def words_network(tmp_path_factory: pytest.TempPathFactory) -> TextNetwork:
    return TextNetwork(pair_of(tmp_path_factory.mktemp('pair')))


@needs_tokenizers
@given(st.text(max_size=60))
def test_any_words_have_a_place(words_network: TextNetwork, words: str) -> None:
    vector = words_network.of(words)
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) <= 1.0 + 1e-5
