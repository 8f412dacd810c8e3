"""Makes ``bag_fixtures`` and ``hand_made_units`` importable for the tests of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
