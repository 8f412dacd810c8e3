"""The one frame of judging: figures over flights, and the pages that show them."""

from pathlib import Path

from mmedge_ros.report import ReportError

TEMPLATES = Path(__file__).parent / 'templates'


class EvaluationError(ReportError):
    """Something cannot be judged; the message names the remedy."""
