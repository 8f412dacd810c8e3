"""The layout for Foxglove shows topics and fields that the graph publishes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmedge_ros.ros.messages.interfaces import INTERFACES

ROOT = Path(__file__).resolve().parents[2]
LAYOUT = json.loads((ROOT / 'config/foxglove.json').read_text())
PUBLISHED = {f'/{i.topic}': i.msgtype for i in INTERFACES if i.publishers}


def texts(part: Any) -> Iterator[str]:
    """Every text of the layout, keys included."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for key, value in part.items():
            yield key
            yield from texts(value)
    elif isinstance(part, list):
        for value in part:
            yield from texts(value)


def panels(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    else:
        yield from panels(part['first'])
        yield from panels(part['second'])


def fields(msgtype: str) -> dict[str, str]:
    """Types of a message's fields, by name."""
    lines = (ROOT / f'msg/{msgtype.rpartition("/")[2]}.msg').read_text().splitlines()
    declared = (line.partition('#')[0].split() for line in lines)
    return {words[1]: words[0] for words in declared if len(words) == 2}


def test_every_topic_and_panel_is_one_of_the_graph() -> None:
    topics = {text.partition('.')[0] for text in texts(LAYOUT) if text.startswith('/')}
    assert topics <= set(PUBLISHED)
    assert {'/camera/image', '/perception/markers', '/perception/tracks'} <= topics
    assert sorted(panels(LAYOUT['layout'])) == sorted(LAYOUT['configById'])


def test_every_plotted_field_exists() -> None:
    for path in sorted(text for text in texts(LAYOUT) if re.match(r'/[\w/]+\.', text)):
        topic, *names = path.split('.')
        msgtype = PUBLISHED[topic]
        for name in names:
            condition = re.search(r'\{(\w+)==', name)
            kind = fields(msgtype)[re.split(r'[\[{]', name)[0]]
            msgtype = kind.removesuffix('[]')
            if condition:
                assert condition[1] in fields(msgtype), path
        assert msgtype in ('float32', 'string'), path
