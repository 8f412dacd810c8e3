"""How figures look, and how they become PNG files.

The palette is Okabe and Ito's, which stays distinct under every common colour blindness;
its yellow is left out, because it is lost on white.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mmedge_ros.core.data_types import CAMERA, RADAR, FloatArray

INK = '#27313b'
MUTED = '#66727f'
BLUE, ORANGE, GREEN, VERMILION = '#0072b2', '#e69f00', '#009e73', '#d55e00'
PURPLE, SKY = '#cc79a7', '#56b4e9'
GREY = '#c3cad1'
CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)
LINES = ('-', '--', ':')
_MODALITY_COLOURS = {CAMERA: BLUE, RADAR: VERMILION}
# Any: each release of matplotlib types the names of its settings in another way.
_STYLE: Any = {
    'font.size': 9,
    'axes.edgecolor': '#9aa5b1',
    'axes.labelcolor': INK,
    'axes.titlecolor': INK,
    'axes.titlelocation': 'left',
    'axes.titlesize': 9.5,
    'axes.titleweight': 'bold',
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.grid': True,
    'axes.axisbelow': True,
    'grid.color': '#e4e8ec',
    'grid.linewidth': 0.7,
    'xtick.color': MUTED,
    'ytick.color': MUTED,
    'text.color': INK,
    'legend.frameon': False,
    'legend.fontsize': 8.5,
    'legend.handlelength': 1.6,
    'legend.columnspacing': 1.4,
    'figure.facecolor': 'white',
}
# More points than this hide each other, and cannot be pointed at.
MOST_POINTS = 1500
# They are drawn as a band of so many bins.
_BINS = 400


class Series(NamedTuple):
    """Values over time in a chart: what they are, their unit, and (N,) values, NaN for none."""

    name: str
    unit: str
    values: FloatArray


class Readout(NamedTuple):
    """What can be read at a point of a chart over time: (N,) times in s and series of values.

    ``frames`` say for the figure and its narrow form where the axes are: left, right, top and
    bottom as shares of the picture, and the times at the left and right edge.
    """

    times: FloatArray
    series: Sequence[Series]
    frames: Sequence[tuple[float, ...]] = ()

    def content(self) -> dict[str, Any]:
        """Return it for the page, thinned to as many points as can be pointed at."""
        step = max(-(-len(self.times) // MOST_POINTS), 1)
        return {
            't': _numbers(self.times[::step]),
            'series': [[s.name, s.unit, _numbers(s.values[::step])] for s in self.series],
            'frames': [[round(value, 4) for value in frame] for frame in self.frames],
        }


def _numbers(values: FloatArray) -> list[float | None]:
    """Write values with three digits or the whole number; None where there is none."""
    return [
        float(f'{v:.3g}') if abs(v) < 100 else round(v, 2) if math.isfinite(v) else None
        for v in values.tolist()
    ]


class FigureFile(NamedTuple):
    """A figure of the report: PNG file ``name``, and ``narrow`` for small screens if it is wide.

    ``title`` and ``caption`` are plain text for the page, ``alternative`` says what is drawn.
    """

    name: str
    png: bytes
    title: str
    caption: str
    alternative: str
    narrow: bytes | None = None
    readout: Readout | None = None


class Words(NamedTuple):
    """What a figure is called: its file, and as `FigureFile` has them title, caption and more."""

    name: str
    title: str
    caption: str
    alternative: str


def still_figure(
    words: Words, draw: Callable[[Figure], None], width: float, height: float
) -> FigureFile:
    """Draw a figure of that size (inches)."""
    png, _ = _rendered(draw, width, height)
    return FigureFile(words.name, png, *words[1:])


def figure_over_time(
    words: Words,
    draw: Callable[[Figure], None],
    sizes: Sequence[tuple[float, float]],
    times: FloatArray,
    series: Sequence[Series],
) -> FigureFile:
    """Draw charts over a common time in one size (inches) or two, with what is to be read there.

    :param draw: all axes it makes have the time along x
    """
    drawn = [_rendered(draw, *size) for size in sizes]
    frames = []
    for _, figure in drawn:
        boxes = [axes.get_position() for axes in figure.axes]
        left, right = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
        top, bottom = max(box.y1 for box in boxes), min(box.y0 for box in boxes)
        frames.append((left, right, 1.0 - top, 1.0 - bottom, *figure.axes[0].get_xlim()))
    wide, narrow = drawn[0][0], drawn[1][0] if len(drawn) > 1 else None
    return FigureFile(words.name, wide, *words[1:], narrow, Readout(times, series, frames))


def _rendered(draw: Callable[[Figure], None], width: float, height: float) -> tuple[bytes, Figure]:
    """Return a figure and its PNG, equal bytes for equal input."""
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script the font lacks is drawn as boxes; that is no reason to warn.
        warnings.filterwarnings('ignore', message='Glyph .* missing')
        figure = Figure(figsize=(width, height), layout='constrained')
        FigureCanvasAgg(figure)
        draw(figure)
        png = io.BytesIO()
        figure.savefig(png, format='png', dpi=160, metadata={'Software': None})
    return png.getvalue(), figure


def modality_colour(modality: str, place: int) -> str:
    """Colour of a modality; ``place`` counts those of the run."""
    return _MODALITY_COLOURS.get(modality, CYCLE[(place + 2) % len(CYCLE)])


def printable(text: str, limit: int = 24) -> str:
    """Make a foreign text safe to draw: short, without control characters or formulas."""
    clean = text.encode(errors='replace').decode()
    clean = ''.join(letter if letter.isprintable() else '?' for letter in clean)
    clean = clean if len(clean) <= limit else clean[: limit - 1] + '…'
    return clean.replace('$', r'\$')


def draw_series(axes: Axes, times: FloatArray, values: FloatArray, colour: str) -> None:
    """Draw points over time, or for very many their median within a band of all of them."""
    finite = np.isfinite(values)
    times, values = times[finite], values[finite]
    if len(times) <= MOST_POINTS:
        axes.plot(times, values, '.', color=colour, markersize=3.5, alpha=0.65)
        return
    chunks = np.array_split(np.argsort(times, kind='stable'), _BINS)
    middle = np.array([times[chunk].mean() for chunk in chunks])
    low, median, high = (
        np.array([reduce(values[chunk]) for chunk in chunks])
        for reduce in (np.min, np.median, np.max)
    )
    axes.fill_between(middle, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(middle, median, color=colour, linewidth=1.0)


def limit_outliers(
    axes: Axes,
    values: FloatArray,
    include: float,
    unit: str,
    drawn: FloatArray | None = None,
) -> None:
    """Set the y range to what nearly all values need, and say how many lie above it.

    :param drawn: all values in the chart, where more are drawn than set the range
    """
    values = values[np.isfinite(values)]
    drawn = values if drawn is None else drawn[np.isfinite(drawn)]
    if not len(values):
        axes.set_ylim(0.0, max(include, 1.0) * 1.1)
        return
    low = min(0.0, float(np.quantile(values, 0.005)) * 1.15)
    high = max(float(np.quantile(values, 0.995)) * 1.3, include * 1.12, 1e-3)
    axes.set_ylim(low, max(high, low + 1e-3))
    above = int(np.count_nonzero(drawn > high))
    if above:
        axes.annotate(
            f'▲ {above} above, up to {drawn.max():.0f} {unit}',
            (0.995, 0.96),
            xycoords='axes fraction',
            ha='right',
            va='top',
            fontsize=8,
            color=MUTED,
        )


def legend_above(axes: Axes, title: str) -> None:
    """Put the title and below it the legend on top of the axes, where they hide nothing."""
    labels = axes.get_legend_handles_labels()[1]
    width = 72.0 * axes.figure.bbox.width / axes.figure.dpi
    columns = _columns(labels, 0.76 * width)
    if labels:
        legend = axes.legend(
            loc='lower left', bbox_to_anchor=(0.0, 1.0), ncol=columns, borderaxespad=0.4
        )
        # The title keeps its room free; a long foreign name must not squeeze the axes.
        legend.set_in_layout(False)
    axes.set_title(title, pad=8 + 13.5 * -(-len(labels) // columns))


def _columns(labels: Sequence[str], room: float) -> int:
    """Return how many columns of legend entries about fit beside each other, in points."""
    for columns in range(len(labels), 1, -1):
        rows = -(-len(labels) // columns)
        widest = [max(map(len, labels[i : i + rows])) for i in range(0, len(labels), rows)]
        if sum(4.4 * length + 26.0 for length in widest) <= room:
            return columns
    return 1
