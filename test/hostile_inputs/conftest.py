"""Replays that take half a second and repeat exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bag_fixtures as flight
import pytest
from replays import Message, Outcome, replay


@pytest.fixture
def run(tmp_path: Path, detector: Path, profile: Path) -> Any:
    """Write messages to a recording and replay it."""

    def write_and_replay(
        messages: list[Message], name: str = 'bag', storage: str = 'mcap', **options: Any
    ) -> Outcome:
        bag = flight.write_bag(tmp_path / name, storage, messages)
        options = {'detector': detector, 'profile': profile, **options}
        return replay(bag, tmp_path / f'{name}_report', **options)

    return write_and_replay


@pytest.fixture(scope='session')
def whole(tmp_path_factory: pytest.TempPathFactory, detector: Path, profile: Path) -> Outcome:
    """The replay of two seconds that nothing is wrong with."""
    folder = tmp_path_factory.mktemp('whole')
    bag = flight.write_bag(folder / 'bag', messages=flight.recording(2.0))
    return replay(bag, folder / 'report', detector=detector, profile=profile)
