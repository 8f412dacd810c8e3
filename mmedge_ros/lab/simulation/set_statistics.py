"""How big, bright, hidden and distant people are in the standard sets.

``python -m mmedge_ros.lab.simulation.set_statistics`` prints the page docs/standard_sets.md.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import Box, FloatArray
from mmedge_ros.lab.simulation.build import build_world
from mmedge_ros.lab.simulation.camera import CameraSimulator, SeenObject
from mmedge_ros.lab.simulation.flight_set import PlannedFlight
from mmedge_ros.lab.simulation.scenario import DISTANCES, LIGHTS, SURROUNDINGS, find_scenario
from mmedge_ros.lab.simulation.standard_sets import STANDARD_SETS
from mmedge_ros.lab.simulation.world import LABELS, World

# A person's middle is about so high, m.
_MIDDLE = np.array([0.0, 0.0, 0.9])
_SIZES = (8.0, 20.0, 40.0, 80.0)  # px of height
_VISIBILITIES = (0.1, 0.5, 0.9)
_PERCENTILES = (5, 25, 50, 75, 95)
# People of this visibility and height in px count as seen.
_SEEN, _TALL = 0.5, 8.0
_CHOICES = (SURROUNDINGS, LIGHTS, tuple(DISTANCES))

_INTRODUCTION = """# The standard sets of simulated flights

Everything that is trained, tuned and judged uses the same flights, declared by scenario and seed
in [standard_sets.py](../mmedge_ros/lab/simulation/standard_sets.py). No seed is in two sets. This
page was written before anything was trained on them;
`python -m mmedge_ros.lab.simulation.set_statistics` prints it again, and a test recomputes a part
of it.

- **train**: every combination of surroundings, light and distance once, every second one again.
- **validation**: each of the surroundings at each distance, the lights in turn. For choosing when
  to stop and which model to keep.
- **calibration**: the same, twice as many, other seeds. For gates, latency models and confidence.
- **test**: `street_day_middle`, and from there one thing at a time: distance, surroundings or
  light. The same seeds are used in each, so that in another light the same people walk the same
  ways past the same drone. Four mixtures are hard on purpose.

People are sampled once a second. *Height* is that of the box of the whole outline in pixels of the
640 x 480 picture, of people at least half visible; *visibility* is the share of the outline that
is in the picture and not hidden; *distance* is from the camera to a person's middle. *Luma* is
0 to 255, of two pictures a flight: all of it, and inside the boxes of people at least half
visible."""


@dataclass(frozen=True, eq=False)
class FlightFigures:
    """What one flight shows, one value for each person and instant.

    ``heights`` px of those at least half visible, ``visibilities`` and ``distances`` m of all.
    ``luma`` and ``people_luma`` are means, NaN where not measured. ``movers`` counts labels.
    """

    flight: PlannedFlight
    heights: FloatArray
    visibilities: FloatArray
    distances: FloatArray
    luma: float
    people_luma: float
    movers: dict[str, int]


def measure_flight(flight: PlannedFlight, pictures: int = 2) -> FlightFigures:
    """Measure a flight once a second, its brightness in so many ``pictures``."""
    world = build_world(flight.scenario, flight.seed, flight.seconds)
    camera = CameraSimulator(world)
    heights: list[float] = []
    visibilities: list[float] = []
    distances: list[float] = []
    for t in np.arange(0.5, flight.seconds, 1.0):
        people = [seen for seen in camera.truth(float(t)) if seen.label == 'person']
        visibilities += [seen.visibility for seen in people]
        heights += [box.height for box in _boxes(people, 0.0)]
        distances += _distances(world, float(t))
    luma, people_luma = _brightness(camera, flight.seconds, pictures)
    labels = [mover.label for mover in world.movers]
    return FlightFigures(
        flight,
        np.array(heights),
        np.array(visibilities),
        np.array(distances),
        luma,
        people_luma,
        {label: labels.count(label) for label in LABELS},
    )


def _distances(world: World, t: float) -> list[float]:
    eye = world.path.state(t).pose.compose(world.rig.camera_pose).translation
    return [
        float(np.linalg.norm(mover.state(t).position + _MIDDLE - eye))
        for mover in world.movers
        if mover.label == 'person'
    ]


def _boxes(people: Iterable[SeenObject], tallest: float) -> list[Box]:
    return [
        seen.box
        for seen in people
        if seen.box is not None and seen.visibility >= _SEEN and seen.box.height >= tallest
    ]


def _brightness(camera: CameraSimulator, seconds: float, pictures: int) -> tuple[float, float]:
    whole, people = [], []
    for t in (np.arange(pictures) + 0.5) * seconds / max(pictures, 1):
        picture = camera.picture(float(t))
        grey = np.asarray(cv2.cvtColor(picture.image, cv2.COLOR_BGR2GRAY), np.float64)
        whole.append(float(grey.mean()))
        persons = (seen for seen in picture.objects if seen.label == 'person')
        for box in _boxes(persons, _TALL):
            x0, y0, x1, y1 = (round(side) for side in box)
            people.append(float(grey[y0:y1, x0 : max(x1, x0 + 1)].mean()))
    return _mean(whole), _mean(people)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float('nan')


def flight_row(figures: FlightFigures) -> tuple[str, ...]:
    """Return the cells of one flight's row."""
    hidden = np.mean(figures.visibilities < _SEEN)
    return (
        figures.flight.name,
        str(figures.movers['person']),
        f'{np.median(figures.distances):.1f}',
        f'{np.median(figures.heights):.0f}' if len(figures.heights) else '-',
        f'{100.0 * hidden:.0f}',
        f'{figures.luma:.0f}',
    )


def _shares(values: FloatArray, edges: Sequence[float]) -> list[str]:
    bins: NDArray[np.int64] = np.searchsorted(edges, values, side='right')
    counts = np.bincount(bins, minlength=len(edges) + 1)
    return [f'{100.0 * count / max(len(values), 1):.0f}' for count in counts]


def _ranges(edges: Sequence[float], unit: str) -> list[str]:
    middle = [f'{a:g} - {b:g}{unit}' for a, b in itertools.pairwise(edges)]
    return [f'< {edges[0]:g}{unit}', *middle, f'>= {edges[-1]:g}{unit}']


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ['---', *['---:'] * (len(head) - 1)], *rows]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)


def composition(flights: Sequence[PlannedFlight]) -> list[str]:
    """Return the cells that say what a set is made of; nothing is simulated for them."""
    scenarios = [find_scenario(flight.scenario) for flight in flights]
    seeds = [flight.seed for flight in flights]
    parts = [
        ' / '.join(str(sum(choice == s[i] for s in scenarios)) for choice in choices)
        for i, choices in enumerate(_CHOICES)
    ]
    seconds = f'{sum(flight.seconds for flight in flights):g}'
    return [str(len(flights)), seconds, f'{min(seeds)} - {max(seeds)}', *parts]


def _pooled(figures: Sequence[FlightFigures], name: str) -> FloatArray:
    return np.concatenate([getattr(one, name) for one in figures])


def _light_row(light: str, figures: Sequence[FlightFigures]) -> list[str]:
    chosen = [f for f in figures if find_scenario(f.flight.scenario).light == light]
    whole = [f.luma for f in chosen]
    people = [f.people_luma for f in chosen if np.isfinite(f.people_luma)]
    cells = [
        f'{np.median(v):.0f} ({min(v):.0f} - {max(v):.0f})' if v else '-' for v in (whole, people)
    ]
    return [light, str(len(chosen)), *cells]


def page(sets: dict[str, list[FlightFigures]]) -> str:
    """Return the whole page in Markdown."""
    everything = [one for figures in sets.values() for one in figures]
    plans = {name: [one.flight for one in figures] for name, figures in sets.items()}
    counted = ('set', 'flights', 'seconds', 'seeds', *map(' / '.join, _CHOICES))
    parts = [
        _INTRODUCTION,
        '## What they are made of',
        _table(counted, ([name, *composition(plan)] for name, plan in plans.items())),
        '## Movers, on average per flight',
        _table(
            ('set', *LABELS),
            (
                [name, *(f'{np.mean([f.movers[label] for f in figures]):.1f}' for label in LABELS)]
                for name, figures in sets.items()
            ),
        ),
        '## Height of people, % of those at least half visible',
        _spread_table(sets, 'heights', _SIZES, ' px'),
        '## Visibility of people, %',
        _spread_table(sets, 'visibilities', _VISIBILITIES, ''),
        '## Distance of people, percentiles in m',
        _table(
            ('set', *(f'{p} %' for p in _PERCENTILES)),
            ([name, *_percentiles(_pooled(f, 'distances'))] for name, f in sets.items()),
        ),
        '## Brightness by light, all sets: median (least - most) of the flights',
        _table(
            ('light', 'flights', 'luma', 'luma of people'),
            (_light_row(light, everything) for light in LIGHTS),
        ),
        '## Validation, flight by flight',
        _table(
            ('flight', 'people', 'median distance, m', 'median height, px', 'hidden, %', 'luma'),
            map(flight_row, sets['validation']),
        ),
    ]
    return '\n\n'.join(parts)


def _percentiles(values: FloatArray) -> list[str]:
    return [f'{value:.1f}' for value in np.percentile(values, _PERCENTILES)]


def _spread_table(
    sets: dict[str, list[FlightFigures]], name: str, edges: Sequence[float], unit: str
) -> str:
    rows = ([key, *_shares(_pooled(figures, name), edges)] for key, figures in sets.items())
    return _table(('set', *_ranges(edges, unit)), rows)


def main() -> None:
    """Measure all sets, which takes a few minutes, and print the page."""
    sets = {}
    for name, flights in STANDARD_SETS.items():
        sys.stderr.write(f'{name}: {len(flights)} flights\n')
        sets[name] = [measure_flight(flight) for flight in flights]
    sys.stdout.write(page(sets) + '\n')


if __name__ == '__main__':
    main()
