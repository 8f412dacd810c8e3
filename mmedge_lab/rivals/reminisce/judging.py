"""Rows of the bench and their controls: what is found by words and by example, with intervals."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging.flight_bootstrap import Drawings, Estimate
from mmedge_lab.judging.flight_sums import Figure, SummedFlights, Sums
from mmedge_lab.rivals.reminisce.galleries import Found

FIGURES = {
    'words': Figure('words_ten', 'words_asked'),
    'examples': Figure('examples_ten', 'examples_asked'),
    'siblings': Figure('siblings_one', 'siblings_asked'),
}
BETTER, WORSE, EVEN = 'better', 'worse', 'no difference'


class _Row(NamedTuple):
    part: str
    sums: Sequence[Sums]
    facts: dict[str, Any]


class Judging:
    """Collects rows over S scenes and compares them; intervals come from drawing scenes."""

    def __init__(self, scenes: Sequence[Hashable]) -> None:
        self._drawings = Drawings.of(scenes)
        self._rows: dict[str, _Row] = {}
        self._pairs: list[tuple[str, str]] = []

    def add(self, part: str, name: str, found: Mapping[str, Found], **facts: Any) -> None:
        """Add a row of a part (a to e).

        :param found: by figure; what is not there was not asked
        :param facts: what stands beside the figures
        """
        nothing = Found(*np.zeros((3, len(self._drawings.seeds))))
        sums = [
            {
                f'{kind}_{column}': float(getattr(found.get(kind, nothing), column)[scene])
                for kind in FIGURES
                for column in Found._fields
            }
            for scene in range(len(nothing.asked))
        ]
        self._rows[name] = _Row(part, sums, facts)

    def compare(self, name: str, control: str) -> None:
        """Ask for a row beside its control; both must be added by the time of the report."""
        self._pairs.append((name, control))

    def rows(self) -> dict[str, Any]:
        """Return every row with its figures."""
        summed = self._summed()
        return {
            name: {
                'part': row.part,
                **row.facts,
                **{figure: summed.estimate(name, figure)._asdict() for figure in FIGURES},
            }
            for name, row in self._rows.items()
        }

    def comparisons(self) -> list[dict[str, Any]]:
        """Return every row less its control, and what that says."""
        summed = self._summed()
        found = []
        for name, control in self._pairs:
            less = {figure: summed.difference(name, control, figure) for figure in FIGURES}
            found.append(
                {
                    'part': self._rows[name].part,
                    'row': name,
                    'control': control,
                    **{figure: of._asdict() for figure, of in less.items()},
                    'verdict': verdict(list(less.values())),
                }
            )
        return found

    def _summed(self) -> SummedFlights:
        subjects = {name: row.sums for name, row in self._rows.items()}
        return SummedFlights(subjects, self._drawings, FIGURES)


def verdict(differences: Sequence[Estimate]) -> str:
    """Say what a row is beside its control: better needs a gain and no loss."""
    if any(of.high < 0.0 for of in differences):
        return WORSE
    return BETTER if any(of.low > 0.0 for of in differences) else EVEN


def worth_flying(comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the rows that are better than every control of theirs."""
    rows = dict.fromkeys(one['row'] for one in comparisons)
    lost = {one['row'] for one in comparisons if one['verdict'] != BETTER}
    return [row for row in rows if row not in lost]
