"""The rival of streaming aggregation: 3-D convolutions over a whole window at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from mmedge_lab.training import TrainingError
from mmedge_lab.training.networks.aggregator import WIDTH, NetworkAggregate, Standardise

# One place for each unit of a camera at 30 Hz in half a second.
SLOTS = 15
# Seconds; what a place in time stands for, and so what is learned, belongs to this length.
WINDOW = 0.5


class WholeWindowEncoder(nn.Module):  # type: ignore[misc]
    """Lays units on a fixed grid in time, (B, C, T, H, V), and convolves over time and space.

    Takes and gives what `Aggregator` does, but can only begin when the window has ended. A
    place in time without a unit holds the one before it, so that rates may vary. Units older
    than the window share the first place.

    :param window: length of the windows it is for, s
    :raises TrainingError: if that is not the length it is built for
    """

    def __init__(self, channels: int, width: int = WIDTH, window: float = WINDOW) -> None:
        super().__init__()
        if window != WINDOW:
            raise TrainingError(
                f'the encoder of whole windows is built for windows of {WINDOW} s, not {window} '
                's: take that length, or the streaming aggregation, which has none'
            )
        self.channels, self.width = channels, width
        self.standardise = Standardise(channels)
        self.projection = nn.Conv2d(channels, width, 1)
        self.first = nn.Conv3d(width, width, 3, stride=(3, 1, 1), padding=1)
        self.second = nn.Conv3d(width, width, 3, padding=1)

    def forward(self, grids: Tensor, seconds_to_end: Tensor, valid: Tensor) -> NetworkAggregate:
        """Encode whole windows; for shapes see `Aggregator`."""
        if valid.shape[1] == 0:  # one place without a unit, so that there is a newest one to ask
            grids = grids.new_zeros(len(grids), 1, *grids.shape[2:])
            seconds_to_end, valid = (functional.pad(x, (0, 1)) for x in (seconds_to_end, valid))
        batch, units = valid.shape
        seconds_to_end = seconds_to_end.clamp(min=0.0)
        present = (valid > 0).any(dim=1)
        chosen = _newest_per_slot(seconds_to_end, valid > 0)
        flat = functional.relu(self.standardise.then(self.projection, grids.flatten(0, 1)))
        projected = flat.reshape(batch, units, *flat.shape[1:])
        rows = torch.arange(batch, device=grids.device).unsqueeze(1)
        held = (chosen >= 0)[:, :, None, None, None]
        sequence = torch.where(held, projected[rows, chosen.clamp(min=0)], 0.0).transpose(1, 2)
        hidden = functional.relu(self.first(sequence))
        hidden = functional.relu(hidden + self.second(hidden))
        mask = present.reshape(-1, 1, 1, 1)
        ages = torch.where(valid > 0, seconds_to_end, torch.inf)
        age, newest = ages.min(dim=1)
        facts = torch.stack(
            (
                present.float(),
                torch.where(present, age.clamp(0.0, 10.0), 0.0),
                (valid > 0).sum(dim=1).float().log1p(),
            ),
            dim=1,
        )
        return NetworkAggregate(
            hidden.mean(dim=2).float(),
            torch.where(mask, grids[rows[:, 0], newest], 0.0),
            facts,
        )


def _newest_per_slot(seconds_to_end: Tensor, valid: Tensor) -> Tensor:
    """Return the unit each place in time holds, (B, SLOTS), oldest place first, -1 for none."""
    begins = WINDOW * torch.arange(SLOTS - 1, -1, -1, device=valid.device) / SLOTS
    # A unit counts from its own place on; of those the newest is held.
    counts = valid.unsqueeze(1) & (seconds_to_end.unsqueeze(1) >= begins.reshape(1, -1, 1))
    ages = torch.where(counts, seconds_to_end.unsqueeze(1), torch.inf)
    age, unit = ages.min(dim=2)
    return torch.where(age < torch.inf, unit, -1)
