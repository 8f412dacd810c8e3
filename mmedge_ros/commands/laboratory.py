"""What the laboratory, a distribution of its own, offers where it is installed."""

from __future__ import annotations

import importlib.metadata
from typing import Any

# The distribution `mmedge-lab` names what it offers by entry points of this group.
GROUP = 'mmedge_ros.laboratory'
REMEDY = 'the laboratory is not installed; see docs/install.md'


def offered(name: str) -> Any:
    """Return what the laboratory offers by a name; None where it is not installed."""
    for entry in importlib.metadata.entry_points(group=GROUP, name=name):
        return entry.load()
    return None
