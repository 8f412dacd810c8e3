"""What a report's page is made of, and that it keeps its promises: sound, alone, and escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

_VOID = ('meta', 'link', 'img', 'br', 'input', 'wbr')


class PageOutline(HTMLParser):
    """Collects tags, visible text, data and anchors of a page.

    Every element is closed, nothing is fetched, no attribute holds a script, links lead to
    places in the page or to files beside it, and the page allows its one script by its hash.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ''
        self.data: list[Any] = []
        self._open: list[tuple[str, str]] = []
        self._scripts: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open
        self._check(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or '') for name, value in attrs]
        if tag not in _VOID:
            self._open.append((tag, dict(attrs).get('type') or ''))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag
        self.text += ' ' if tag not in ('b', 'span') else ''

    def handle_data(self, data: str) -> None:
        tag, kind = self._open[-1] if self._open else ('', '')
        if tag == 'script' and kind == 'application/json':
            self.data.append(json.loads(data))
        elif tag == 'script':
            self._scripts.append(data)
        elif tag not in ('style', 'title'):
            self.text += data

    @property
    def words(self) -> str:
        """The visible text with single spaces."""
        return ' '.join(self.text.split())

    def _check(self, page: str) -> None:
        assert not {'iframe', 'object', 'form', 'embed', 'base'} & set(self.tags)
        assert not [name for _, name, _ in self.attributes if name.startswith('on')]
        assert '@import' not in page
        assert 'url(' not in page
        places = {value for _, name, value in self.attributes if name == 'id'}
        for tag, name, value in self.attributes:
            if name in ('src', 'srcset') or (name == 'href' and tag != 'a'):
                assert value.startswith('data:')
            elif name == 'href' and not value.startswith('./'):
                assert value.removeprefix('#') in places
        (script,) = self._scripts
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        (policy,) = (v for _, n, v in self.attributes if n == 'content' and 'default-src' in v)
        assert re.findall(r'script-src ([^;]*)', policy) == [f"'sha256-{digest}'"]
        assert "default-src 'none'" in policy
