"""Plain values from outside, as fields of the type they must have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.flight_bootstrap import Estimate
from mmedge_ros.records.plain_values import plain_values
from mmedge_ros.untrusted_files import shown

_MOST_ROWS = 10_000
_DIGITS = 5

Record = TypeVar('Record')
Value = TypeVar('Value')


class Fields(NamedTuple):
    """A mapping and where it stands; every method raises EvaluationError for a wrong value."""

    where: str
    values: Mapping[str, Any]

    def part(self, name: str) -> Fields:
        """Return a mapping within this one."""
        return Fields(f'{self.where}: {name}', self._of(name, dict, 'a mapping'))

    def rows(self, name: str) -> Iterator[Fields]:
        """Yield the mappings of a list."""
        rows = self._of(name, list, 'a list')
        if len(rows) > _MOST_ROWS:
            raise self._wrong(name, rows, 'a list')
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                raise self._wrong(f'{name}[{number}]', row, 'a mapping')
            yield Fields(f'{self.where}: {name}[{number}]', row)

    def first(self, name: str) -> Fields:
        """Return the first mapping of a list."""
        row = next(self.rows(name), None)
        if row is None:
            raise self._wrong(name, [], 'a list that holds something')
        return row

    def number(self, name: str) -> float:
        """Return a number; NaN for null."""
        return self._number(name, self.values.get(name))

    def text(self, name: str) -> str:
        """Return a text."""
        return self._of(name, str, 'a text')

    def flag(self, name: str) -> bool:
        """Return true or false."""
        return self._of(name, bool, 'true or false')

    def numbers(self, name: str, count: int) -> tuple[float, ...]:
        """Return so many numbers; NaN for null."""
        values = self._of(name, list, f'{count} numbers')
        if len(values) != count:
            raise self._wrong(name, values, f'{count} numbers')
        return tuple(self._number(f'{name}[{n}]', value) for n, value in enumerate(values))

    def estimate(self, name: str) -> Estimate:
        """Return a value and its interval."""
        return Estimate(*self.numbers(name, 3))

    def count(self, name: str) -> int:
        """Return the length of a list."""
        return len(self._of(name, list, 'a list'))

    def record(self, kind: type[Record]) -> Record:
        """Return a dataclass of texts, numbers, flags and estimates, a field for each."""
        read = {
            'str': self.text,
            'float': self.number,
            'bool': self.flag,
            'Estimate': self.estimate,
        }
        return kind(**{f.name: read[str(f.type)](f.name) for f in fields(kind)})  # type: ignore[arg-type]

    def _of(self, name: str, kind: type[Value], wanted: str) -> Value:
        value = self.values.get(name)
        if not isinstance(value, kind):
            raise self._wrong(name, value, wanted)
        return value

    def _number(self, name: str, value: Any) -> float:
        if value is None:
            return math.nan
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or abs(value) > 1e12:
            raise self._wrong(name, value, 'a number')
        return float(value)

    def _wrong(self, name: str, value: object, wanted: str) -> EvaluationError:
        return EvaluationError(
            f'{self.where}: {name} is {shown(value)}, not {wanted}; make it again'
        )


def plain_record(record: Any) -> dict[str, Any]:
    """Return what `Fields.record` reads back, rounded, None where there is no number."""
    return {f.name: plain_values(getattr(record, f.name), _DIGITS) for f in fields(record)}
