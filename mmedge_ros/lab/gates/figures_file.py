"""The figures of a flight with a gate as plain values, to keep and to read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mmedge_ros.lab.gates.certificate import FlightOutcome
from mmedge_ros.lab.gates.loop_figures import FlightFigures, WindowWork
from mmedge_ros.skipping import SkippingError


def plain_figures(figures: FlightFigures) -> dict[str, Any]:
    """Return the figures as values for JSON."""
    return {
        'outcome': list(figures.outcome),
        'windows': [list(window) for window in figures.windows],
        'units': figures.units,
        'encoder_seconds': figures.encoder_seconds,
        'reference_seconds': figures.reference_seconds,
        'early_by': figures.early_by.tolist(),
        'confidences': figures.confidences.tolist(),
        'agrees': figures.agrees.tolist(),
        'stream': list(figures.stream),
        'reference_stream': list(figures.reference_stream),
        'audits': list(figures.audits),
    }


def read_figures(plain: Mapping[str, Any]) -> FlightFigures:
    """Return the figures that `plain_figures` made values of.

    :raises SkippingError: if they are not that
    """
    try:
        return FlightFigures(
            FlightOutcome(*(int(count) for count in plain['outcome'])),
            tuple(
                WindowWork(float(quality), int(full), int(encoded), bool(early), bool(differs))
                for quality, full, encoded, early, differs in plain['windows']
            ),
            {
                str(modality): {str(name): int(count) for name, count in counts.items()}
                for modality, counts in plain['units'].items()
            },
            float(plain['encoder_seconds']),
            float(plain['reference_seconds']),
            np.array(plain['early_by'], np.float64),
            np.array(plain['confidences'], np.float64),
            np.array(plain['agrees'], np.float64),
            _stream(plain['stream']),
            _stream(plain['reference_stream']),
            tuple(bool(agreed) for agreed in plain['audits']),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as err:
        raise SkippingError(
            f'no figures of a flight with a gate ({err}); replay it again'
        ) from err


def _stream(values: Any) -> tuple[float, int]:
    total, count = values
    return float(total), int(count)
