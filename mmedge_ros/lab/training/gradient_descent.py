"""How a network learns from batches, whatever it is and whatever the loss."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mmedge_ros.lab.training import TrainingError

_LAST_RATE = 0.02  # share of the learning rate left at the end

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class DescentParameters:
    """AdamW with a learning rate that rises for ``warm_up`` steps and falls to the end.

    Gradients are cut to the length ``largest_gradient``. The averaged network follows the last
    ``averaged`` steps, fewer at the beginning.
    """

    learning_rate: float
    weight_decay: float
    warm_up: int
    largest_gradient: float
    averaged: int


class GradientDescent:
    """A network that learns, and the average over its last steps, which is what counts.

    :param total: steps to the end
    """

    def __init__(self, network: Any, parameters: DescentParameters, total: int) -> None:
        self.network = network
        self.average = copy.deepcopy(network).eval()
        self._parameters, self._total = parameters, total
        self._optimizer = _adamw(network, parameters)

    def take(self, step: int, loss_of: Callable[[], Any]) -> float:
        """Take one step down the loss, and return this.

        :param loss_of: runs the network
        :raises TrainingError: if the loss grows without bound
        """
        import torch

        parameters = self._parameters
        share = learning_rate_share(step, self._total, parameters.warm_up)
        for group in self._optimizer.param_groups:
            group['lr'] = parameters.learning_rate * share
        self.network.train()
        self._optimizer.zero_grad(set_to_none=True)
        loss = loss_of()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise TrainingError(
                f'the loss is {value} at step {step}: the training has left all bounds; begin '
                'anew with another seed'
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), parameters.largest_gradient)
        self._optimizer.step()
        self._follow(step)
        return value

    def _follow(self, step: int) -> None:
        """Move the averaged network towards the trained one."""
        weight = 1.0 / min(2.0 + 0.1 * step, self._parameters.averaged)
        trained = self.network.state_dict()
        # A state holds no gradients.
        for name, value in self.average.state_dict().items():
            if value.dtype.is_floating_point:
                value.lerp_(trained[name], weight)
            else:
                value.copy_(trained[name])

    def state(self) -> dict[str, Any]:
        """Return all that a checkpoint needs to go on as if nothing had happened."""
        import torch

        return {
            'network': self.network.state_dict(),
            'average': self.average.state_dict(),
            'optimizer': self._optimizer.state_dict(),
            'generator': torch.get_rng_state(),
        }

    def restore(self, content: dict[str, Any]) -> None:
        """Take up what `state` returned; errors are those of torch."""
        import torch

        self.network.load_state_dict(content['network'])
        self.average.load_state_dict(content['average'])
        self._optimizer.load_state_dict(content['optimizer'])
        torch.set_rng_state(content['generator'])


def learning_rate_share(step: int, total: int, warm_up: int) -> float:
    """Return the share of the learning rate: a short rise, then half a cosine down."""
    rise = min(warm_up, max(total // 10, 1))
    if step < rise:
        return (step + 1) / rise
    share = (step - rise) / max(total - rise, 1)
    return _LAST_RATE + (1.0 - _LAST_RATE) * 0.5 * (1.0 + math.cos(math.pi * share))


def _adamw(network: Any, parameters: DescentParameters) -> Any:
    """AdamW; biases, normalisations and decays are not pulled towards zero."""
    import torch

    weights = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim <= 1]
    groups = [
        {'params': weights, 'weight_decay': parameters.weight_decay},
        {'params': others, 'weight_decay': 0.0},
    ]
    return torch.optim.AdamW(groups, lr=parameters.learning_rate, betas=(0.9, 0.999))


class EpochProgress:
    """Says how far a training is, and how long the rest will take.

    :param first: epoch it begins with
    :param steps: of an epoch
    """

    def __init__(self, first: int, epochs: int, steps: int, on_progress: Progress | None) -> None:
        self._first, self._epochs, self._steps = first, epochs, steps
        self._on_progress = on_progress
        self._begun = time.monotonic()

    def tell(self, epoch: int, steps_done: int, loss: float) -> None:
        """Tell it after a step, with the mean loss of the epoch so far."""
        if self._on_progress is None:
            return
        done = epoch + steps_done / self._steps
        elapsed = time.monotonic() - self._begun
        left = elapsed * (self._epochs - done) / (done - self._first)
        words = f'epoch {epoch + 1} of {self._epochs}, loss {loss:.3f}, {_duration(left)} left'
        self._on_progress(done / self._epochs, words)


def _duration(seconds: float) -> str:
    return f'{seconds:.0f} s' if seconds < 90 else f'{seconds / 60:.0f} min'
