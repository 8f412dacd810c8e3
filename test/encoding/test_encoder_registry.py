"""Modalities that are added from outside, by a program or by an installed package."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding import EncodingError, encoder_registry
from mmedge_ros.encoding.encoder_registry import (
    EncoderKind,
    EncoderSettings,
    added_kinds,
    encoder_kind,
)
from mmedge_ros.encoding.unit_encoder import RadarEncoder, UnitEncoder


def make(settings: EncoderSettings) -> UnitEncoder:
    return RadarEncoder(settings.limits)


THERMAL = EncoderKind('thermal', 'sensor_msgs/msg/Image', 'thermal/image', make)


class Installed(NamedTuple):
    """An entry point of a package."""

    content: object
    name: str = 'thermal'
    value: str = 'warm_eyes:KIND'

    def load(self) -> object:
        if isinstance(self.content, Exception):
            raise self.content
        return self.content


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Installed]]:
    packages: list[Installed] = []
    monkeypatch.setattr(importlib.metadata, 'entry_points', lambda group: packages)
    encoder_registry._installed.cache_clear()
    yield packages
    encoder_registry._installed.cache_clear()


def test_camera_and_radar_are_there_without_any_package() -> None:
    assert [encoder_kind(m).modality for m in (CAMERA, RADAR)] == [CAMERA, RADAR]
    assert encoder_kind(RADAR).make(EncoderSettings()).modality == RADAR
    with pytest.raises(EncodingError, match='needs a detector'):
        encoder_kind(CAMERA).make(EncoderSettings())


def test_an_installed_package_adds_a_modality(install: list[Installed]) -> None:
    install.append(Installed(THERMAL))
    assert encoder_kind('thermal') is THERMAL
    assert added_kinds() == [THERMAL]


def test_an_unknown_modality_is_refused_and_the_known_ones_are_named(
    install: list[Installed],
) -> None:
    install.append(Installed(THERMAL))
    with pytest.raises(EncodingError, match=r"'sonar'; there are camera, radar, thermal"):
        encoder_kind('sonar')


@pytest.mark.parametrize(
    ('content', 'words'),
    [(ImportError('no module warm'), 'warm_eyes:KIND: no module warm'), (7, 'no EncoderKind')],
)
def test_a_package_that_cannot_be_used_is_named(
    install: list[Installed], content: object, words: str
) -> None:
    install.append(Installed(content))
    with pytest.raises(EncodingError, match=words):
        added_kinds()
