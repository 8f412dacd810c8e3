"""The pictures of a report: what the camera saw, with what the run made of it.

They may show people. `NO_PICTURES` makes a report without any.
"""

from __future__ import annotations

from typing import NamedTuple

ANIMATION, STRIP = 'animation.webp', 'strip.webp'
MOMENTS = ('best', 'missed', 'false', 'renamed', 'crowded', 'uncertain', 'slowest')
PICTURE_NAMES = (ANIMATION, STRIP, *(f'moment_{name}.webp' for name in MOMENTS))


class PictureFile(NamedTuple):
    """A picture of the report: WebP file ``name``, ``width`` and ``height`` in pixels.

    ``title`` and ``caption`` are plain text for the page, ``alternative`` says what is shown.
    """

    name: str
    webp: bytes
    width: int
    height: int
    title: str
    caption: str
    alternative: str


class RunPictures(NamedTuple):
    """The pictures of a run; ``absence`` is a sentence that says why there is none."""

    animation: PictureFile | None = None
    strip: PictureFile | None = None
    moments: tuple[PictureFile, ...] = ()
    absence: str = ''

    @property
    def files(self) -> dict[str, bytes]:
        """Contents by the name of their file."""
        shown = (self.animation, self.strip, *self.moments)
        return {picture.name: picture.webp for picture in shown if picture is not None}


NO_PICTURES = RunPictures()
