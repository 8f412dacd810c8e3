from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmedge_ros.core.untrusted_files import (
    PlainYamlError,
    YamlTrapError,
    is_number,
    load_plain_yaml,
    load_shallow_yaml,
    read_bounded,
    shown,
)


class RefusedError(Exception):
    """What the caller wants raised."""


def test_a_file_of_just_the_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / 'file'
    path.write_bytes(b'12345')
    assert read_bounded(path, 5, RefusedError) == b'12345'
    with pytest.raises(RefusedError, match=rf'^{path}: larger than 4 bytes; give less$'):
        read_bounded(path, 4, RefusedError, 'give less')


def test_a_device_that_never_ends_is_refused() -> None:
    with pytest.raises(RefusedError, match=r'^/dev/zero: larger than 1000 bytes$'):
        read_bounded('/dev/zero', 1000, RefusedError)


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('missing', 'No such file or directory; look again'),
        ('', 'Is a directory'),
        ('nu\0ll', 'null'),
        ('x' * 5000, 'File name too long'),
    ],
)
def test_what_cannot_be_read_is_said_with_its_path(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(RefusedError, match=words) as refused:
        read_bounded(tmp_path / name, 5, RefusedError, 'look again')
    assert str(tmp_path) in str(refused.value)


def test_plain_values_are_read(tmp_path: Path) -> None:
    path = tmp_path / 'a.yaml'
    path.write_text('rate: 20\nname: camera\nparts: [1.5, {deep: yes}]\n')
    assert load_plain_yaml(path, 1000) == {
        'rate': 20,
        'name': 'camera',
        'parts': [1.5, {'deep': True}],
    }


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        (b'a: [1', 'not plain YAML'),
        (b'\xff\xfe\xff', 'not plain YAML'),
        (b'a: !!python/object/apply:os.system [ls]', 'not plain YAML'),
        (b'a: 2001-99-99', 'cannot be read'),
        (b'a: ' + b'9' * 6000, 'cannot be read'),
        (b'? [1, 2]\n: 3', 'not plain YAML'),
        (b'', 'holds nothing'),
        (b'- 1', 'holds a list'),
        (b'a: &x [1]\nb: *x', 'line 2 refers to an anchor'),
        (b'[' * 50_000, 'nested deeper'),
        (b'a: "' + b'x' * 200_000 + b'"', 'larger than'),
    ],
)
def test_what_is_not_plain_is_refused_with_the_reason(
    tmp_path: Path, text: bytes, reason: str
) -> None:
    path = tmp_path / 'bad.yaml'
    path.write_bytes(text)
    with pytest.raises(PlainYamlError, match=reason) as caught:
        load_plain_yaml(path, 200_000)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 600


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(PlainYamlError, match=r'nowhere\.yaml: No such file'):
        load_plain_yaml(tmp_path / 'nowhere.yaml', 10)
    with pytest.raises(PlainYamlError, match='Is a directory'):
        load_plain_yaml(tmp_path, 10)
    with pytest.raises(PlainYamlError, match='null'):
        load_plain_yaml('a\0b', 10)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_a_mapping_or_the_error(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / 'any.yaml'
    path.write_bytes(raw)
    try:
        content = load_plain_yaml(path, 1000)
    except PlainYamlError:
        return
    assert isinstance(content, dict)


@pytest.mark.parametrize('value', [0, 1, 0.5])
def test_a_number_within_bounds_is_one(value: float) -> None:
    assert is_number(value, 0.0, 1.0)


@pytest.mark.parametrize('value', [True, 'x', None, [0.5], float('nan'), -1, 1.5])
def test_truth_values_and_what_is_out_of_bounds_are_no_numbers(value: object) -> None:
    assert not is_number(value, 0.0, 1.0)


def test_a_value_is_shown_cut_to_what_fits_a_message() -> None:
    assert shown('abc') == "'abc'"
    assert len(shown('x' * 10_000)) < 100
    assert shown(int('f' * 5000, 16)) == 'a huge number'
    assert shown([int('f' * 5000, 16)]) == 'a huge number'


def laughs(levels: int, width: int = 10) -> bytes:
    lines = ['a0: &a0 [lol]']
    lines += [f'a{n}: &a{n} [{", ".join(width * [f"*a{n - 1}"])}]' for n in range(1, levels)]
    return '\n'.join(lines).encode()


@pytest.mark.parametrize(
    'bomb',
    [
        laughs(12),
        laughs(30, 2),
        b'a: &a {b: &b [*a]}',
        b'a: &a [x, *a]',
        b'x: &x ' + b'[' + b'1, ' * 50_000 + b'1]\ny: [*x, *x]',
        b'a: &a [1]\nb: &a [*a, *a]\nc: &c [*a, *c]',
    ],
)
def test_references_that_would_grow_without_bound_are_refused_at_once(bomb: bytes) -> None:
    with pytest.raises(YamlTrapError, match=r'line \d+ refers to anchors that hold'):
        load_shallow_yaml(bomb)


def test_values_that_were_written_once_for_two_places_are_read() -> None:
    assert load_shallow_yaml(b'a: &a [1, 2]\nb: {c: *a}\nd: &d x\ne: *d') == {
        'a': [1, 2],
        'b': {'c': [1, 2]},
        'd': 'x',
        'e': 'x',
    }
