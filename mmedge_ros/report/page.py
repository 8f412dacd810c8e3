"""The page of a report: one HTML file that needs nothing beside it, and words for figures."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

if TYPE_CHECKING:
    from mmedge_ros.report.figure_style import FigureFile

UNKNOWN = '–'
TEMPLATES = Path(__file__).parent / 'templates'


class Tile(NamedTuple):
    """A headline figure: its name, its value, and one line that puts it in place."""

    name: str
    value: str
    note: str


def render_page(
    template: str,
    report: Mapping[str, Any],
    figures: Sequence[FigureFile],
    scripts: Sequence[str] = ('page.js.j2',),
    folder: Path = TEMPLATES,
    **content: Any,
) -> str:
    """Render the page from the content of report.json and the figures.

    Every text is escaped; images, style and one script are inside. The page lets a browser run
    that script alone, by its hash; without any the charts are still pictures.

    :param template: name of the family's template
    :param scripts: names of what the one script is put together from
    :param folder: where the family's template lies, if not beside this file
    :param content: what the template needs besides: ``title``, ``summary``, ``tiles``, ...
    """
    by_name = {figure.name.removesuffix('.png'): figure for figure in figures}
    script = ''.join((TEMPLATES / name).read_text() for name in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _environment(folder).get_template(template)
    return page.render(
        report=report,
        figures=by_name,
        contents=[],
        script=script,
        script_hash=f'sha256-{digest}',
        **content,
    )


@cache
def _environment(folder: Path) -> Environment:
    """Return what renders the templates of a family, each compiled once."""
    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        'anchor': anchor,
        'capital': capital,
        'base64': lambda png: base64.b64encode(png).decode(),
        'number': number,
        'percent': percent,
    }
    environment.policies['json.dumps_kwargs'] = {'separators': (',', ':'), 'allow_nan': False}
    return environment


def anchor(title: str) -> str:
    """Return a name for a place in the page."""
    return re.sub('[^a-z0-9]+', '-', title.lower())[:40].strip('-') or 'section'


def number(value: float | None, digits: int = 1, unit: str = '') -> str:
    """Write a number with its unit, or a dash where there is none."""
    return UNKNOWN if value is None or math.isnan(value) else f'{value:,.{digits}f}{unit}'


def milliseconds(value: float | None) -> str:
    """Write a duration in ms with as many digits as it is worth, or a dash where there is none."""
    whole = value is not None and (abs(value) >= 100 or float(value).is_integer())
    return number(value, 0 if whole else 1, ' ms')


def percent(value: float | None, digits: int = 1) -> str:
    """Write a share as percentage, or a dash where there is none."""
    return UNKNOWN if value is None else f'{100 * value:.{digits}f}\N{NO-BREAK SPACE}%'


def capital(words: str) -> str:
    """Write words as a title."""
    return words[:1].upper() + words[1:]
