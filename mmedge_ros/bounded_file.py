"""Files from outside, read up to a size that no file of their kind has."""

from __future__ import annotations

from pathlib import Path


def read_bounded(
    path: str | Path, most_bytes: int, refusal: type[Exception], remedy: str = ''
) -> bytes:
    """Return all of a file; a device that never ends is not read for ever.

    :param refusal: what is raised, with a message that begins with the path
    :param remedy: what to do instead, for the end of that message
    :raises refusal: if it cannot be read or is larger
    """
    path, end = Path(path), f'; {remedy}' if remedy else ''
    try:
        with path.open('rb') as file:
            content = file.read(most_bytes + 1)
    except OSError as err:
        raise refusal(f'{path}: {err.strerror or err}{end}') from err
    except ValueError as err:  # a path that no file system can hold
        raise refusal(f'{str(path)!r}: {err}{end}') from err
    if len(content) > most_bytes:
        raise refusal(f'{path}: larger than {most_bytes} bytes{end}')
    return content
