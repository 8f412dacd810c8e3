"""Names of classes from metadata."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.class_names import COCO, class_names


def test_a_mapping_is_read_in_the_order_of_its_numbers() -> None:
    assert class_names({'names': "{1: 'dog', 0: 'person'}"}, 2, 'x') == ('person', 'dog')


def test_a_list_is_read_as_it_stands() -> None:
    assert class_names({'names': '["person", "dog"]'}, 2, 'x') == ('person', 'dog')


def test_eighty_classes_without_names_are_those_of_coco() -> None:
    names = class_names({}, 80, 'x')
    assert names == COCO
    assert len(set(names)) == 80
    assert names[0] == 'person'
    assert names[79] == 'toothbrush'


def test_classes_that_cannot_be_counted_are_those_of_coco() -> None:
    assert class_names({}, None, 'x') == COCO


def test_other_numbers_of_classes_without_names_are_numbered() -> None:
    assert class_names({}, 3, 'x') == ('class0', 'class1', 'class2')


def test_another_number_of_names_than_of_classes_is_refused() -> None:
    with pytest.raises(EncodingError, match='net names 1 classes in its metadata but puts out 2'):
        class_names({'names': "{0: 'person'}"}, 2, 'net')


@pytest.mark.parametrize(
    'text', ['', '{', '[]', '{}', '5', '{0: 1}', "{0: 'a', 2: 'b'}", "{'x': 'a'}", '(' * 5000]
)
def test_names_that_are_no_names_are_refused(text: str) -> None:
    with pytest.raises(EncodingError, match='must look like'):
        class_names({'names': text}, None, 'net')


@given(st.text())
def test_any_text_gives_names_or_the_planned_error(text: str) -> None:
    try:
        names = class_names({'names': text}, None, 'net')
    except EncodingError:
        return
    assert names
    assert all(isinstance(name, str) for name in names)
