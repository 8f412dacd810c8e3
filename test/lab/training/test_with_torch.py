"""What needs torch, all but what is about detectors (see ./test_detectors_with_torch.py)."""

from __future__ import annotations

import pytest
from torch_environment import DETECTORS, FOLDER, needs_torch, run_with_torch


@needs_torch
@pytest.mark.timeout(600)
def test_all_but_detectors_passes_in_the_environment_for_training() -> None:
    run_with_torch(FOLDER, *(f'--ignore={path}' for path in DETECTORS))
