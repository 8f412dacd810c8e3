"""What recognises tracked objects; nothing here opens a network."""

from __future__ import annotations

from dataclasses import dataclass

from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.encoding.track_recognition import RecognitionParameters


@dataclass(frozen=True)
class RecogniserParameters:
    """What recognises tracked objects, and how often."""

    model: str = parameter(
        '',
        'what says more of tracked objects than the detector does: `bundle` for the recogniser of '
        "the detector's bundle, or a bundle folder with one (see docs/models.md); empty for none",
    )
    memory: bool = parameter(
        False,
        'leave the recogniser early where its semantic memory recalls the class, not where an '
        'exit head is sure of it, which saves more',
    )
    tracks: RecognitionParameters = group(RecognitionParameters)
