"""A copy of a bundle in which a training writes its result: there as a whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmedge_ros.lab.training import TrainingError


@contextmanager
def bundle_copy(bundle: Path, out: Path) -> Iterator[Path]:
    """Give a hidden copy of a bundle to change; it becomes ``out`` when the block ends well.

    :raises TrainingError: if it cannot be written, in the block as well
    """
    partial = out.with_name(f'.{out.name}.part')
    try:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(bundle, partial)
        yield partial
        partial.rename(out)
    except OSError as err:
        raise TrainingError(
            f'{out} cannot be written: {err.strerror or err}; what was replayed is kept, so run '
            'the same command again'
        ) from err
    finally:
        shutil.rmtree(partial, ignore_errors=True)
