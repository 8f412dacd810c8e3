"""Trainings in epochs, for any network and loss: repeatable, and resumable after any end."""

from __future__ import annotations

import copy
import math
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.checkpoint import resume, save_checkpoint
from mmedge_ros.encoding.ultralytics_network import import_libraries

FLOAT32, BFLOAT16 = 'float32', 'bfloat16'
_LAST_RATE = 0.02  # share of the learning rate left at the end
_AHEAD = 2
# torch has no public question for them.
_BFLOAT16_INSTRUCTIONS = ('_is_amx_tile_supported', '_is_avx512_bf16_supported')

Batch = TypeVar('Batch')


class TrainingParameters(NamedTuple):
    """AdamW with a learning rate that rises for ``warm_up`` steps and falls to the end.

    Before it falls it is kept for the first ``held`` epochs: so long nothing depends on how many
    epochs there will be. Gradients are cut to the length ``largest_gradient``. The averaged
    network follows the last ``averaged`` steps, fewer at the beginning; for 1 it is the network
    that learns. An epoch has so many ``steps``.
    """

    learning_rate: float
    weight_decay: float
    warm_up: int
    largest_gradient: float
    averaged: int
    epochs: int
    steps: int
    held: int = 0


class Task(NamedTuple):
    """What is trained, and all that tells one training from another.

    ``batches`` yields those of an epoch, as many as its ``steps``; ``loss`` returns that of a
    batch, a scalar tensor. ``judge`` says after each epoch how good the averaged network is, the
    more the better; without it the network of the last epoch is the best.
    """

    network: Any
    batches: Callable[[int], Iterator[Any]]
    loss: Callable[[Any], Any]
    judge: Callable[[Any], float] | None = None


class EpochTraining:
    """A training from its first step, or from its last checkpoint on.

    The average over the last steps is what counts, not the network that learns.

    :param task: its network is on the device it is trained on
    :param checkpoint: file that is written after each epoch; None for trainings of minutes
    :param identity: plain values of all that the result depends on
    :raises TrainingError: if the checkpoint is damaged or of another training
    """

    def __init__(
        self,
        task: Task,
        parameters: TrainingParameters,
        checkpoint: Path | None = None,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        self.epoch = 0
        self.losses: list[float] = []
        self.worths: list[float] = []
        self._task, self._parameters = task, parameters
        self._learning = task.network
        is_averaged = parameters.averaged > 1
        self._average = copy.deepcopy(task.network).eval() if is_averaged else task.network
        self._best: dict[str, Any] | None = None
        self._checkpoint, self._identity = checkpoint, identity or {}
        self._optimizer = _adamw(task.network, parameters)
        if checkpoint is not None and checkpoint.is_file():
            resume(checkpoint, self._identity, self._restore)

    @property
    def network(self) -> Any:
        """The best network so far: an average over steps, on the CPU, in evaluation mode."""
        network = copy.deepcopy(self._average).cpu()
        if self._best is not None:
            network.load_state_dict(self._best)
        return network.eval()

    @property
    def best_epoch(self) -> int:
        """Number of the best epoch, from 1 on: the last of those that are as good as any."""
        return max(range(len(self.worths)), key=lambda k: (self.worths[k], k), default=-1) + 1

    def run(self, on_progress: Report | None = None) -> None:
        """Train to the end, with a checkpoint after each epoch.

        :raises TrainingError: if a batch cannot be made, or the loss grows without bound
        :raises OSError: if a checkpoint cannot be written; the one before is kept
        """
        epochs, steps = self._parameters.epochs, self._parameters.steps
        first, begun = self.epoch, time.monotonic()
        for epoch in range(first, epochs):
            total = 0.0
            for place, batch in enumerate(self._task.batches(epoch), start=1):
                total += self._step(batch, epoch * steps + place - 1)
                if on_progress:
                    done = epoch + place / steps
                    left = (time.monotonic() - begun) * (epochs - done) / (done - first)
                    words = f'epoch {epoch + 1} of {epochs}, loss {total / place:.3f}'
                    on_progress(done / epochs, f'{words}, {_duration(left)} left')
            self.losses.append(total / steps)
            self.epoch = epoch + 1
            if self._task.judge is not None:
                self._keep_best(self._task.judge(self._average.eval()))
            if self._checkpoint is not None:
                save_checkpoint(self._checkpoint, {**self._identity, **self._state()})

    def _keep_best(self, worth: float) -> None:
        self.worths.append(worth if math.isfinite(worth) else -math.inf)
        if self.worths[-1] >= max(self.worths):
            state = self._average.state_dict()
            self._best = {name: value.detach().cpu().clone() for name, value in state.items()}

    def _step(self, batch: Any, step: int) -> float:
        """Take one step down the loss, and return this."""
        import torch

        parameters = self._parameters
        total, held = (n * parameters.steps for n in (parameters.epochs, parameters.held))
        share = learning_rate_share(step, total, parameters.warm_up, held)
        for group in self._optimizer.param_groups:
            group['lr'] = parameters.learning_rate * share
        self._learning.train()
        self._optimizer.zero_grad(set_to_none=True)
        loss = self._task.loss(batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise TrainingError(
                f'the loss is {value} at step {step}: the training has diverged; begin anew with '
                'another seed'
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._learning.parameters(), parameters.largest_gradient)
        self._optimizer.step()
        if self._average is not self._learning:
            self._follow(step)
        return value

    def _follow(self, step: int) -> None:
        """Move the averaged network towards the trained one; a state holds no gradients."""
        weight = 1.0 / min(2.0 + 0.1 * step, self._parameters.averaged)
        trained = self._learning.state_dict()
        for name, average in self._average.state_dict().items():
            if average.dtype.is_floating_point:
                average.lerp_(trained[name], weight)
            else:
                average.copy_(trained[name])

    def _state(self) -> dict[str, Any]:
        """Return all that a checkpoint needs to go on as if nothing had happened."""
        import torch

        return {
            'epoch': self.epoch,
            'losses': self.losses,
            'figures': self.worths,
            'best': self._best,
            'network': self._learning.state_dict(),
            'average': self._average.state_dict(),
            'optimizer': self._optimizer.state_dict(),
            'generator': torch.get_rng_state(),
        }

    def _restore(self, content: dict[str, Any]) -> None:
        """Take up what `_state` returned; errors are those of torch."""
        import torch

        self.epoch, self.losses = int(content['epoch']), list(content['losses'])
        self.worths, self._best = list(content['figures']), content['best']
        self._learning.load_state_dict(content['network'])
        self._average.load_state_dict(content['average'])
        self._optimizer.load_state_dict(content['optimizer'])
        torch.set_rng_state(content['generator'])


def learning_rate_share(step: int, total: int, warm_up: int, held: int = 0) -> float:
    """Return the share of the learning rate: a short rise, then half a cosine down.

    :param held: steps after which it begins to fall
    """
    rise = min(warm_up, max(total // 10, 1))
    if step < rise:
        return (step + 1) / rise
    begin = max(rise, held)
    share = max(step - begin, 0) / max(total - begin, 1)
    return _LAST_RATE + (1.0 - _LAST_RATE) * 0.5 * (1.0 + math.cos(math.pi * share))


def _adamw(network: Any, parameters: TrainingParameters) -> Any:
    """AdamW; biases, normalisations and decays are not pulled towards zero."""
    import torch

    weights = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim <= 1]
    groups = [
        {'params': weights, 'weight_decay': parameters.weight_decay},
        {'params': others, 'weight_decay': 0.0},
    ]
    return torch.optim.AdamW(groups, lr=parameters.learning_rate, betas=(0.9, 0.999))


def _duration(seconds: float) -> str:
    return f'{seconds:.0f} s' if seconds < 90 else f'{seconds / 60:.0f} min'


def made_ahead(make: Callable[[int], Batch], count: int, threads: int = 1) -> Iterator[Batch]:
    """Yield ``make(0)`` to ``make(count - 1)``, made by threads while those before are used."""
    ahead = _AHEAD * threads
    with ThreadPoolExecutor(threads, 'batches') as pool:
        waiting = deque(pool.submit(make, place) for place in range(min(ahead, count)))
        for place in range(count):
            made = waiting.popleft().result()
            if place + ahead < count:
                waiting.append(pool.submit(make, place + ahead))
            yield made


def prepare_torch(folder: Path, threads: int) -> Any:
    """Import torch so that it repeats itself, and ultralytics so that it stays in a folder.

    :raises EncodingError: if a library is missing
    """
    # Read when the libraries are imported or first used.
    os.environ['OMP_NUM_THREADS'] = str(threads)
    # Threads that spin while they wait for each other make a shared machine 20 times slower.
    os.environ.setdefault('OMP_WAIT_POLICY', 'PASSIVE')
    os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'
    torch, _, _ = import_libraries(
        folder,
        'a training needs torch and ultralytics (licensed AGPL-3.0)',
        './mmedge lab train installs them beside this package',
    )
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    # Some operators on a GPU have no repeatable form: they warn, and are used all the same.
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    warnings.filterwarnings('ignore', message='.*deterministic', category=UserWarning)
    return torch


def training_device() -> str:
    """Return the GPU where there is one, else the processor."""
    import torch

    return 'cuda' if torch.cuda.is_available() else 'cpu'


def fastest_precision() -> str:
    """Return bfloat16 where the processor or GPU multiplies such matrices natively."""
    try:
        import torch
    except ImportError:
        return FLOAT32  # the training itself reports what is missing
    if torch.cuda.is_available():
        return BFLOAT16 if torch.cuda.is_bf16_supported(including_emulation=False) else FLOAT32
    native = (getattr(torch.cpu, name, bool) for name in _BFLOAT16_INSTRUCTIONS)
    return BFLOAT16 if any(supported() for supported in native) else FLOAT32


def usual_threads(threads: int) -> int:
    """Return a number of threads; for 0 one for each core, 8 at most."""
    return threads or min(os.cpu_count() or 1, 8)
