"""Batches of training pictures: placed, scaled, mirrored, relit, spoilt, and four put into one.

What is cut off by the border, or shrinks below what can be seen, becomes *ignored*: neither an
object to find nor background. Everything depends on the generator passed in and on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training.epoch_training import made_ahead
from mmedge_lab.training.picture_set import Domain, Labelled, Labels, PictureSet
from mmedge_lab.training.teacher import Taught, Teacher
from mmedge_ros.encoding.letterbox import PADDING
from mmedge_ros.sensing.camera.image import Picture

_LEAST_SHARE = 0.4  # of a box that must be left inside for the object to stay one
_LEAST_HEIGHT = 6.0  # px
# px, and share of the height of what is shown; how far a picture is scaled for that at most, and
# the least share of the crop's sides that it fills then.
_SHORTEST, _TALLEST, _LARGEST_FACTOR, _LEAST_FILLED = 10.0, 0.9, 2.0, 0.35


@dataclass(frozen=True)
class Augmentation:
    """How much pictures are changed; ``mosaic`` is the share made of four others.

    Scales are factors on the scale at which the detector gets a picture. ``aimed`` is the share
    of pictures placed so that some object is in them, and ``sized`` the share of those scaled so
    that it is as tall as any that fits: what is small in one source is large in another.
    ``whole`` is the share of batches with a quarter of the pictures at twice the size: no other
    shows people from nearby. ``grey``, ``blurred``, ``noisy`` and ``packed`` (as JPEG) are shares
    of real pictures; simulated cameras have faults of their own.
    """

    smallest: float = 0.55
    largest: float = 1.5
    aimed: float = 0.8
    sized: float = 0.5
    mirrored: float = 0.5
    mosaic: float = 0.5
    gain: float = 0.3  # of brightness, natural logarithm
    gamma: float = 0.3  # exponent, natural logarithm
    tint: float = 0.1  # of each colour, natural logarithm
    whole: float = 0.4
    grey: float = 0.15
    blurred: float = 0.1
    noisy: float = 0.15
    packed: float = 0.25


Size = tuple[int, int]


class Batch(NamedTuple):
    """``pictures`` (B, 3, H, W) uint8 RGB, and rows of picture, class, x0, y0, x1, y1 (px).

    ``objects`` (N, 6) are to be detected, ``ignored`` (M, 6) are not judged. ``simulated`` (B,)
    marks pictures of the simulator, ``taught`` is what another detector sees in them.
    """

    pictures: NDArray[np.uint8]
    objects: NDArray[np.float32]
    ignored: NDArray[np.float32]
    simulated: NDArray[np.bool_]
    taught: Taught | None = None


@dataclass(frozen=True)
class BatchSource:
    """Makes the batches of any epoch; the same for the same seed, whatever was made before.

    ``size`` is the detector's input, ``crop`` the part of it that one picture shows. So many
    ``threads`` make batches. A ``teacher`` looks at photos.
    """

    pictures: PictureSet
    size: tuple[int, int]
    crop: tuple[int, int]
    batch: int
    seed: int
    augmentation: Augmentation
    threads: int = 1
    teacher: Teacher | None = None

    def __len__(self) -> int:
        """Batches in an epoch; pictures that do not fill the last one wait for the next."""
        return max(1, len(self.pictures) // self.batch)

    def epoch(self, epoch: int, mosaic: bool = True) -> Iterator[Batch]:
        """Return the batches of one epoch.

        :raises TrainingError: if a picture is missing or damaged
        """
        order = self.pictures.drawn(np.random.default_rng((self.seed, epoch)))

        def made(place: int) -> Batch:
            numbers = order[place * self.batch : (place + 1) * self.batch]
            return self._batch(epoch, place, numbers, mosaic)

        return made_ahead(made, len(self), self.threads)

    def _batch(self, epoch: int, place: int, numbers: Sequence[int], mosaic: bool) -> Batch:
        settings = self.augmentation if mosaic else replace(self.augmentation, mosaic=0.0)
        crop = self.crop
        if np.random.default_rng((self.seed, epoch, place)).random() < settings.whole:
            crop = 2 * crop[0], 2 * crop[1]
            numbers = numbers[: -(-len(numbers) // 4)]
        # Mosaics take their parts from the batch: reading a picture takes longer than the rest.
        loaded = [self.pictures.load(number) for number in numbers]
        made = []
        for position in range(len(loaded)):
            rng = np.random.default_rng((self.seed, epoch, place, position))
            made.append(Augmenter(self.size, crop, settings, rng)(loaded, position))
        batch = joined(made)
        photos = [n for n, sample in enumerate(made) if sample.domain is Domain.PHOTO]
        if self.teacher is None or not photos:
            return batch
        known = [self.teacher.look(batch.pictures[n]) for n in photos]
        taught = Taught.nothing(len(made), known[0].boxes.shape[1])
        for n, of in zip(photos, known, strict=True):
            taught.scores[n], taught.boxes[n] = of.scores[0], of.boxes[0]
        return batch._replace(taught=taught)


class Augmenter(NamedTuple):
    """Makes training pictures of the size ``crop`` (width, height).

    ``size`` is the detector's input, into which whole pictures are fitted in flight.
    """

    size: Size
    crop: Size
    settings: Augmentation
    rng: np.random.Generator

    def __call__(self, pictures: Sequence[Labelled], number: int) -> Labelled:
        """Return one training picture.

        :param pictures: of which that of a ``number`` is shown, and others beside it in a mosaic
        """
        rng = self.rng
        if rng.random() < self.settings.mosaic:
            alike = [p for p in pictures if p.domain is pictures[number].domain]
            others = rng.integers(len(alike), size=3).tolist()
            made = self._mosaic([pictures[number], *(alike[place] for place in others)])
        else:
            made = self._placed(pictures[number], self.crop)
        image = _relit(made.image, self.settings, rng)
        if made.domain is not Domain.SIMULATED:
            image = _spoilt(image, self.settings, rng)
        return made._replace(image=image)

    def _placed(self, picture: Labelled, crop: Size) -> Labelled:
        """Cut a part out of a picture, scaled and perhaps mirrored."""
        settings, rng = self.settings, self.rng
        height, width = picture.image.shape[:2]
        scale = np.exp(rng.uniform(np.log(settings.smallest), np.log(settings.largest)))
        factor = float(scale) * min(self.size[0] / width, self.size[1] / height)
        mirrored = bool(rng.random() < settings.mirrored)
        aim = rng.random(2) * (width, height)
        if len(picture.objects) and rng.random() < settings.aimed:
            box = picture.objects[rng.integers(len(picture.objects)), 1:]
            aim = (box[:2] + box[2:]) / 2
            if mirrored:
                aim[0] = width - aim[0]
            if rng.random() < settings.sized:
                tall = np.exp(rng.uniform(np.log(_SHORTEST), np.log(_TALLEST * crop[1])))
                least = _LEAST_FILLED * min(crop[0] / width, crop[1] / height)
                factor = float(tall / max(box[3] - box[1], 1.0))
                factor = min(max(factor, least), _LARGEST_FACTOR)
        x, y = (
            _offset(float(rng.random()) * extent, factor * float(middle), factor * whole, extent)
            for middle, whole, extent in zip(aim, (width, height), crop, strict=True)
        )
        return _warped(picture, crop, factor, (x, y), mirrored=mirrored)

    def _mosaic(self, pictures: Sequence[Labelled]) -> Labelled:
        """Fill the four quarters around a random middle with a part of one picture each."""
        (width, height), rng = self.crop, self.rng
        x, y = round(width * rng.uniform(0.35, 0.65)), round(height * rng.uniform(0.35, 0.65))
        canvas = np.empty((height, width, 3), np.uint8)
        objects, ignored = [], []
        corners = ((0, 0, x, y), (x, 0, width, y), (0, y, x, height), (x, y, width, height))
        for picture, (x0, y0, x1, y1) in zip(pictures, corners, strict=True):
            part = self._placed(picture, (x1 - x0, y1 - y0))
            canvas[y0:y1, x0:x1] = part.image
            shift = np.array((0, x0, y0, x0, y0), np.float32)
            objects.append(part.objects + shift)
            ignored.append(part.ignored + shift)
        return Labelled(
            canvas, np.concatenate(objects), np.concatenate(ignored), pictures[0].domain
        )


def _offset(target: float, middle: float, whole: float, extent: int) -> float:
    """Bring ``middle`` of a picture ``whole`` long to ``target``, without needless padding."""
    spare = extent - whole
    return min(max(target - middle, min(spare, 0.0)), max(spare, 0.0))


def _warped(
    picture: Labelled, crop: Size, factor: float, offset: tuple[float, float], *, mirrored: bool
) -> Labelled:
    """Scale a picture and put its corner at ``offset`` (px of the crop)."""
    width = picture.image.shape[1]
    x, y = offset
    # cv2 counts from the middle of a pixel; boxes count from its corner.
    middle = 0.5 * factor - 0.5
    across = (-factor, factor * (width - 1) + x + middle) if mirrored else (factor, x + middle)
    matrix = np.array([[across[0], 0.0, across[1]], [0.0, factor, y + middle]])
    image = cv2.warpAffine(picture.image, matrix, crop, borderValue=(PADDING,) * 3)
    objects, cut = _moved(picture.objects, width, factor, (x, y), crop, mirrored)
    ignored, _ = _moved(picture.ignored, width, factor, (x, y), crop, mirrored, least=0.0)
    ignored = np.concatenate((ignored, cut))
    return Labelled(np.asarray(image, np.uint8), objects, ignored, picture.domain)


def _moved(
    rows: Labels,
    width: int,
    factor: float,
    offset: tuple[float, float],
    size: Size,
    mirrored: bool,
    least: float = _LEAST_SHARE,
) -> tuple[Labels, Labels]:
    """Move boxes with their picture; return those that stay, and those that are cut too far."""
    boxes = rows[:, 1:].copy()
    if mirrored:
        boxes[:, [0, 2]] = width - boxes[:, [2, 0]]
    boxes = boxes * np.float32(factor) + np.array((*offset, *offset), np.float32)
    inside = np.clip(boxes, 0.0, np.array((*size, *size), np.float32))
    left, whole = _areas(inside), _areas(boxes)
    seen = left > 1.0
    stays = seen & (left >= least * whole)
    if least:
        stays &= inside[:, 3] - inside[:, 1] >= _LEAST_HEIGHT
    moved = np.concatenate((rows[:, :1], inside), axis=1).astype(np.float32)
    return moved[stays], moved[seen & ~stays]


def _areas(boxes: Labels) -> Labels:
    areas: Labels = np.prod(np.clip(boxes[:, 2:] - boxes[:, :2], 0.0, None), axis=1)
    return areas


def _relit(image: Picture, settings: Augmentation, rng: np.random.Generator) -> Picture:
    """Change brightness, contrast and colour as another exposure would."""
    exponent = np.exp(rng.normal(0.0, settings.gamma))
    gains = np.exp(rng.normal(0.0, settings.gain) + rng.normal(0.0, settings.tint, 3))
    levels = np.linspace(0.0, 1.0, 256)[:, None] ** exponent * gains
    table = np.clip(255.0 * levels + 0.5, 0.0, 255.0).astype(np.uint8)
    return np.asarray(cv2.LUT(image, table.reshape(1, 256, 3)), np.uint8)


def _spoilt(picture: Picture, settings: Augmentation, rng: np.random.Generator) -> Picture:
    """Take away colour, sharpness and quiet, as cheap cameras, thermal ones and radio do."""
    grey, blurred, noisy, packed = rng.random(4) < (
        settings.grey,
        settings.blurred,
        settings.noisy,
        settings.packed,
    )
    made: Any = picture
    if grey:
        made = cv2.cvtColor(cv2.cvtColor(made, cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR)
    if blurred:
        made = cv2.GaussianBlur(made, (0, 0), rng.uniform(0.4, 1.6))
    if noisy:
        noise = rng.normal(0.0, rng.uniform(2.0, 12.0), (*made.shape[:2], 1 if grey else 3))
        made = np.clip(made + noise, 0.0, 255.0).astype(np.uint8)
    if packed:
        quality = int(rng.integers(25, 90))
        made = cv2.imdecode(
            cv2.imencode('.jpg', made, (cv2.IMWRITE_JPEG_QUALITY, quality))[1], cv2.IMREAD_COLOR
        )
    return np.asarray(made, np.uint8)


def joined(samples: Sequence[Labelled]) -> Batch:
    """Put pictures of one size into one batch."""
    stacked = np.stack([sample.image for sample in samples])
    pictures = np.ascontiguousarray(stacked[..., ::-1].transpose(0, 3, 1, 2))
    objects = [_numbered(place, sample.objects) for place, sample in enumerate(samples)]
    ignored = [_numbered(place, sample.ignored) for place, sample in enumerate(samples)]
    simulated = np.array([sample.domain is Domain.SIMULATED for sample in samples])
    return Batch(pictures, np.concatenate(objects), np.concatenate(ignored), simulated)


def _numbered(place: int, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    column = np.full((len(rows), 1), place, np.float32)
    return np.concatenate((column, rows), axis=1)
