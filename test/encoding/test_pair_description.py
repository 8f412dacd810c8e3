"""What a manifest says of a pair of networks is read strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_pair import SIZE, write_tiny_pair

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.pair_description import describe_pair, pair_warning

MODELS = Path(__file__).resolve().parents[2] / 'models'
PIXELS = {'size': [8, 6], 'mean': [0.0, 0.0, 0.0], 'deviation': [1.0, 1.0, 1.0]}


def test_files_input_tokens_and_prompt_are_found(tmp_path: Path) -> None:
    pair = describe_pair(write_tiny_pair(tmp_path, section={'tokens': {'length': 5, 'pad': 3}}))
    assert pair is not None
    files = pair.image, pair.text, pair.tokenizer
    assert [f.path.name for f in files] == ['image.onnx', 'text.onnx', 'tokenizer.json']
    assert (pair.form.size, pair.form.rgb, pair.form.square) == (SIZE, True, False)
    assert (pair.length, pair.pad) == (5, 3)
    assert pair.prompted('a {} dog') == 'a photo of a {} dog'


@pytest.mark.parametrize(
    ('section', 'words'),
    [
        ({'format': 2}, r'format 2, this version reads 1'),
        ({'format': True}, r'format True'),
        ({'format': None}, r'format None'),
        ({'image': None}, r'memory_encoder.image'),
        ({'text': {'weights': '../text.onnx', 'sha256': '0' * 64}}, r'leaves the bundle'),
        ({'tokenizer': {'weights': 'tokenizer.json', 'sha256': 'abc'}}, r'64 hexadecimal'),
        ({'input': {**PIXELS, 'size': [0, 6]}}, r'memory_encoder.input'),
        ({'input': {**PIXELS, 'deviation': [0.0, 1.0, 1.0]}}, r'memory_encoder.input'),
        ({'tokens': None}, r'memory_encoder.tokens None; it must be like'),
        ({'tokens': {'length': 0}}, r'a length of 1 to 1024'),
        ({'tokens': {'length': 77, 'pad': -1}}, r'must be like'),
        ({'tokens': {'length': 77, 'fill': 1}}, r'must be like'),
        ({'prompt': 'a photo'}, r'with {} where words go'),
        ({'prompt': '{} and {}'}, r'with {} where words go'),
        ({'prompt': '{0.__class__}'}, r'with {} where words go'),
        ({'promt': 'a photo of {}'}, r'memory_encoder.promt, which nothing reads'),
    ],
)
def test_an_entry_that_is_wrong_is_named(
    section: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(EncodingError, match=words):
        describe_pair(write_tiny_pair(tmp_path, section=section))


@pytest.mark.parametrize(
    ('domain', 'is_simulated', 'words'),
    [
        ('real', True, 'trained on real pictures, and these are simulated'),
        ('real', False, ''),
        ('simulated', False, 'has only ever seen simulated pictures'),
        ('simulated', True, ''),
    ],
)
def test_pictures_that_a_pair_was_not_trained_for_are_warned_of(
    domain: str, is_simulated: bool, words: str, tmp_path: Path
) -> None:
    said = pair_warning(write_tiny_pair(tmp_path, domain=domain), is_simulated)
    assert bool(said) == bool(words)
    assert words in said


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda of: (
        st.lists(of, max_size=4)
        | st.dictionaries(st.sampled_from(['size', 'mean', 'length', 'pad', 'weights']), of)
    ),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    name=st.sampled_from(['format', 'image', 'text', 'tokenizer', 'input', 'tokens', 'prompt']),
    value=VALUES,
)
def test_any_value_is_read_or_named(tmp_path: Path, name: str, value: Any) -> None:
    write_tiny_pair(tmp_path, section={name: value})
    refusal = ''
    try:
        describe_pair(tmp_path)
    except EncodingError as err:
        refusal = str(err)
    assert not refusal or f'memory_encoder.{name}' in refusal
