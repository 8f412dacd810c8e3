"""What needs torch and is about detectors; ./test_with_torch.py has the rest."""

from __future__ import annotations

import pytest
from torch_environment import DETECTORS, needs_torch, run_with_torch


@needs_torch
@pytest.mark.timeout(600)
def test_detectors_pass_in_the_environment_for_training() -> None:
    run_with_torch(*DETECTORS)
