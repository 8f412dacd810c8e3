"""The exception of this subpackage."""

from __future__ import annotations


class EvaluationError(ValueError):
    """A run cannot be evaluated or its report cannot be written; the message names the remedy."""
