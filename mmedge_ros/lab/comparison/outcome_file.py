"""Outcomes as files that tell whose they are, and whether they are whole."""

from __future__ import annotations

import hashlib
import io
import zipfile

import numpy as np

from mmedge_ros.lab.comparison.outcome import ROW, TOTALS, Outcome
from mmedge_ros.lab.evaluation.case_figures import figures_bytes, read_figures

_DIGEST_BYTES = 32


def outcome_bytes(outcome: Outcome, key: str) -> bytes:
    """Return the content of a file.

    :param key: says what it is the outcome of
    """
    content = io.BytesIO()
    np.savez_compressed(
        content,
        key=np.array(key),
        columns=np.array(ROW),
        totals_of=np.array(TOTALS),
        totals=np.array([outcome.totals[name] for name in TOTALS]),
        rows=outcome.rows,
        levels=np.array(outcome.levels, np.str_),
        problems=np.array(outcome.problems, np.str_),
        figures=np.frombuffer(figures_bytes(outcome.figures, key), np.uint8),
    )
    body = content.getvalue()
    return hashlib.sha256(body).digest() + body


def read_outcome(content: bytes, key: str) -> Outcome | None:
    """Read an outcome back; None for a damaged file or one of something else."""
    digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        return None
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as file:
            known = (str(file['key']), tuple(file['columns']), tuple(file['totals_of']))
            if known != (key, ROW, TOTALS):
                return None
            totals = np.asarray(file['totals'], np.float64).tolist()
            rows = np.asarray(file['rows'], np.float64)
            levels, problems = (
                tuple(str(text) for text in file[name].tolist()) for name in ('levels', 'problems')
            )
            figures = read_figures(file['figures'].tobytes(), key)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None
    if figures is None or rows.shape != (len(levels), len(ROW)) or len(totals) != len(TOTALS):
        return None
    return Outcome(figures, dict(zip(TOTALS, totals, strict=True)), rows, levels, problems)
