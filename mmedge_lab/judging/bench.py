"""What a bench consists of: rows that are judged on the same subjects, and figures of their sums.

A row gives sums of each subject (a flight, or a repetition of a measurement); figures are
quotients or quantiles of what all subjects gave together. `mmedge_lab.judging.run_bench` judges
the rows and `mmedge_lab.judging.bench_table` makes the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.simulation.flight_folder import flights_in, read_description
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.untrusted_files import shown

# What a row gives of a subject, by column: a number to be added up, or values to be pooled.
Sums: TypeAlias = Mapping[str, float | Sequence[float]]
# Sums of each subject, by row.
Results: TypeAlias = Mapping[str, Sequence[Sums]]

_QUICK_SUBJECTS = 2
_Flight = TypeVar('_Flight')


class UnmeasuredError(EvaluationError):
    """A row cannot be measured here; its cells stay empty, and the table says why."""


class Figure(NamedTuple):
    """A column of a table: ``offset`` + ``scale`` * above / below, each summed over subjects.

    Without ``below`` it is the mean over subjects. With a ``quantile`` (0..1) it is that of the
    values in ``above``, pooled over subjects. A ``relative`` figure is compared with a reference
    by quotient, any other by difference. One that is not ``shown`` is only compared; one that is
    not ``compared`` is only shown, as every row has the same value.
    """

    title: str
    above: str
    below: str = ''
    digits: int = 3
    offset: float = 0.0
    scale: float = 1.0
    quantile: float | None = None
    relative: bool = False
    shown: bool = True
    compared: bool = True


class Subject(NamedTuple):
    """What rows are judged on: a flight, or a repetition where there is none.

    Subjects of one ``seed`` are no independent samples and are drawn together.
    """

    name: str
    path: Path | None = None
    seed: str = ''

    @property
    def flight(self) -> Path:
        """The path, of one that has one."""
        assert self.path is not None
        return self.path


def derived(_: Any) -> Sums:
    """Judge nothing: the sums of such a row are made of those of others."""
    return {}


@dataclass(frozen=True)
class Row:
    """One of what is compared.

    ``judge`` takes what the bench's ``open`` returned. It must be one that can be pickled where
    several processes judge. Rows of one ``group`` share a table, whose title the group is.
    ``words`` say what the row does. ``levels`` are those at which a bench encodes pictures.
    """

    name: str
    judge: Callable[[Any], Sums] = derived
    words: str = ''
    group: str = ''
    levels: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The row's name among all groups."""
        return f'{self.group}: {self.name}' if self.group else self.name


def itself(subject: Subject, rows: Sequence[Row], on_share: OnShare) -> Subject:  # noqa: ARG001
    """Open nothing: rows take the subject as it is."""
    return subject


@dataclass(frozen=True)
class Bench:
    """What a bench judges and how it is shown.

    :ivar title: what the table is of, in words
    :ivar rows: in the order of the table
    :ivar figures: by name
    :ivar subjects: see `BenchRequest.flights` and `repetitions`
    :ivar open: makes of a subject what rows take, for those rows that are still to be judged
    :ivar references: names of rows with which the others of their group are compared; the first
        one belongs to every choice of rows
    :ivar key: what results depend on besides software, subject and row, such as a bundle's
        digest; '' where every row measures this machine, and nothing is kept
    :ivar order: figure by which rows are sorted, the greatest first; '' as they are
    :ivar shown: most rows of a table beside the references; 0 for all
    :ivar about: facts for the head of the page
    :ivar derive: rows that are made of the results of others, as far as there are these, by the
        keys of `Row`
    :ivar notes: sentences below the tables, made of the results
    :ivar asked: names of the rows that are shown beside the first reference; () for all
    """

    title: str
    rows: tuple[Row, ...]
    figures: Mapping[str, Figure]
    subjects: tuple[Subject, ...]
    open: Callable[[Subject, Sequence[Row], OnShare], Any] = itself
    references: tuple[str, ...] = ()
    key: str = ''
    order: str = ''
    shown: int = 0
    about: Mapping[str, Any] = field(default_factory=dict)
    derive: Callable[[Results], Mapping[Row, Sequence[Sums]]] | None = None
    notes: Callable[[Results], Sequence[str]] | None = None
    asked: tuple[str, ...] = ()

    def only(self, names: Sequence[str]) -> Bench:
        """Return the bench of the rows of these names; of all without a name.

        Where one may be of a derived row, all are judged that it may be made of.

        :raises EvaluationError: for a name that no row has
        """
        made = replace(self, asked=tuple(names))
        if self.derive and not {row.name for row in self.rows}.issuperset(names):
            return made
        return replace(made, rows=tuple(made.shown_of(self.rows)))

    def shown_of(self, rows: Sequence[Row]) -> list[Row]:
        """Return those of the rows that are asked for, and the first reference.

        :raises EvaluationError: for a name that no row has
        """
        known = list(dict.fromkeys(row.name for row in rows))
        for name in self.asked:
            if name not in known:
                raise EvaluationError(f'no row {name!r}; there are {", ".join(known)}')
        wanted = {*self.asked, *self.references[:1]}
        return [row for row in rows if not self.asked or row.name in wanted]


@dataclass(frozen=True)
class BenchRequest:
    """What a person asks of a bench; the same options for every one.

    ``inputs`` are flights, sets of flights, or what else a bench takes. ``detector`` is a bundle
    or weights, '' for the bench's own choice. ``quick`` judges few subjects, to see it work.
    """

    inputs: tuple[Path, ...] = ()
    detector: str = ''
    out: Path = Path('out/bench')
    jobs: int = 1
    quick: bool = False

    def flights(self) -> tuple[Subject, ...]:
        """Return the flights named, those of a set one by one, as subjects by their seeds.

        :raises EvaluationError: where none is named
        :raises SimulationError: for a folder without any
        """
        if not self.inputs:
            raise EvaluationError('name flights, or a folder with a folder per flight')
        folders = [flight for path in self.inputs for flight in flights_in(path)]
        return tuple(map(flight_subject, few(folders) if self.quick else folders))

    def repetitions(self, count: int) -> tuple[Subject, ...]:
        """Return so many repetitions of a measurement; one if it is to be quick."""
        return tuple(Subject(str(n), seed=str(n)) for n in range(1 if self.quick else count))

    def input(self, number: int, what: str) -> Path:
        """Return one of the inputs, such as a table.

        :raises EvaluationError: where it is not named
        """
        if len(self.inputs) <= number:
            raise EvaluationError(f'name {what} after the name of the bench')
        return self.inputs[number]


def listed(key: str, text: str, least: float, most: float) -> tuple[float, ...]:
    """Read the numbers of a setting of a bench, by commas.

    :raises EvaluationError: for one that is not from ``least`` to ``most``
    """
    found = []
    for part in text.split(','):
        try:
            found.append(float(part))
        except ValueError:
            found.append(math.nan)
        if not least <= found[-1] <= most:
            raise EvaluationError(
                f'{key}: {shown(part)} is no number from {least:g} to {most:g}; write such ones, '
                'with commas between them'
            )
    return tuple(found)


def total_of(sums: Sums, column: str) -> float:
    """Return the sum of a column; 0 where it is missing."""
    return float(np.sum(sums.get(column, 0.0)))


def flight_subject(folder: Path) -> Subject:
    """Return a flight as a subject; its seed is the flight itself where it does not say."""
    known = read_description(folder)
    return Subject(folder.name, folder, str(folder if known is None else known.seed))


def few(flights: Sequence[_Flight], most: int = _QUICK_SUBJECTS) -> tuple[_Flight, ...]:
    """Return ``most`` of the flights of a set, spread over it; all of them for 0."""
    if not most or most >= len(flights):
        return tuple(flights)
    return tuple(flights[number * len(flights) // most] for number in range(most))


def flights_about(subjects: Sequence[Subject]) -> dict[str, str]:
    """Return what the head of a page says of flights: how many, and of which sets."""
    sets = dict.fromkeys(subject.path.parent.name for subject in subjects if subject.path)
    return {'flights': f'{len(subjects)} of {", ".join(sets)}'}
