"""Runs a pair of networks that share a space: one embeds pictures, the other one texts.

What their exports call inputs and outputs differs; the usual names are known. Both may be shared
by threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.untrusted_files import read_bounded
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import BundleFile
from mmedge_ros.encoding.crops import CropForm, as_input
from mmedge_ros.encoding.detector import Image
from mmedge_ros.encoding.onnx_session import open_session, runtime_errors
from mmedge_ros.encoding.pair_description import PairDescription

IMAGE_OUTPUT, TEXT_OUTPUT = 'image_embeds', 'text_embeds'
_IDS, _MASK = ('input_ids', 'text', 'tokens', 'input'), 'attention_mask'
_FLOATS = {'tensor(float)': np.float32, 'tensor(float16)': np.float16}
_INTEGERS = {'tensor(int64)': np.int64, 'tensor(int32)': np.int32}
_TWO_DIMENSIONS = 2
# Those of the largest vocabularies have about half of it.
_LARGEST_TOKENIZER = 64 << 20  # bytes
_TINY = 1e-12
_TOKENIZER = 'name the tokenizer.json that belongs to the text network'
_EXPORT = 'export it again as docs/memory.md shows'

Vector = NDArray[np.float32]


class ImageNetwork:
    """Embeds pictures.

    :raises EncodingError: if the file is not the manifest's, cannot be opened, or takes or puts
        out something else
    """

    def __init__(self, description: PairDescription) -> None:
        self._form = description.form
        self._network = _Network(description.image, IMAGE_OUTPUT)
        width, height = self._form.size
        names = list(self._network.inputs)
        if len(names) != 1:
            raise EncodingError(
                f'{self._network.place} takes {_listed(names)}; the image network takes pictures '
                f'alone; {_EXPORT}'
            )
        self._name = names[0]
        self._type = self._network.type_of(self._name, _FLOATS, (1, 3, height, width))

    def of(self, picture: Image) -> Vector:
        """Return the vector (D,) of length 1 of a picture (H, W, 3) BGR of any size.

        :raises EncodingError: if it is none, or the network fails or puts out no vector
        """
        if self._form.square:
            picture = _filled(picture, self._form)
        return self._network.run({self._name: as_input(picture, self._form).astype(self._type)})


class TextNetwork:
    """Embeds texts.

    :raises EncodingError: as `ImageNetwork` does, and if the package tokenizers is missing
    """

    def __init__(self, description: PairDescription) -> None:
        self._description = description
        self._tokenizer = _opened_tokenizer(description.tokenizer, description.length)
        self._network = _Network(description.text, TEXT_OUTPUT)
        names, shape = list(self._network.inputs), (1, description.length)
        ids = [name for name in names if name in _IDS]
        if len(ids) != 1 or set(names) - {*ids, _MASK}:
            raise EncodingError(
                f'{self._network.place} takes {_listed(names)}; the text network takes one of '
                f'{", ".join(_IDS)}, and may take {_MASK}; {_EXPORT}'
            )
        self._ids = ids[0]
        self._types = {name: self._network.type_of(name, _INTEGERS, shape) for name in names}

    def of(self, words: str) -> Vector:
        """Return the vector (D,) of length 1 of words.

        :raises EncodingError: if they cannot be divided into tokens, or the network fails or puts
            out no vector
        """
        length, place = self._description.length, self._description.tokenizer.path
        with runtime_errors(f'{place} cannot divide {words!r} into tokens'), _panics():
            ids = self._tokenizer.encode(self._description.prompted(words)).ids
        if len(ids) > length:
            raise EncodingError(
                f'{place} makes {len(ids)} tokens of {words!r}, and tokens.length is {length}; '
                'enter the length that the text network was trained with'
            )
        blank = length - len(ids)
        values = {
            self._ids: [*ids, *[self._description.pad] * blank],
            _MASK: [1] * len(ids) + [0] * blank,
        }
        feeds = {name: np.array([values[name]], kind) for name, kind in self._types.items()}
        return self._network.run(feeds)


class _Network:
    """A session with one output: vectors."""

    def __init__(self, file: BundleFile, output: str) -> None:
        self.place = str(file.path)
        self._session: Any = open_session(file.verified(('.onnx',)))
        self.inputs: dict[str, Any] = {port.name: port for port in self._session.get_inputs()}
        ports = {port.name: port for port in self._session.get_outputs()}
        fitting = [
            name
            for name, port in ports.items()
            if len(port.shape or ()) == _TWO_DIMENSIONS and port.type in _FLOATS
        ]
        if not fitting:
            raise EncodingError(
                f'{self.place} puts out {_listed(list(ports))}, of which none is (1, length) and '
                f'float or float16; {_EXPORT}, with the output {output}'
            )
        self._output = output if output in fitting else fitting[0]

    def type_of(self, name: str, types: Mapping[str, Any], shape: tuple[int, ...]) -> Any:
        """Return the numpy type of an input that takes this shape; sides left open take any.

        :raises EncodingError: if it takes another shape or type
        """
        port = self.inputs[name]
        sides = list(port.shape or ())
        fits = len(sides) == len(shape) and all(
            not isinstance(side, int) or side in (wanted, -1)
            for side, wanted in zip(sides, shape, strict=True)
        )
        if not fits or port.type not in types:
            raise EncodingError(
                f'{self.place} takes {name[:80]!r} of shape {str(sides)[:80]} and type '
                f'{port.type}, and the manifest asks for {list(shape)}, {" or ".join(types)}; '
                'correct input.size or tokens.length, or export it with a batch of 1'
            )
        return types[port.type]

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> Vector:
        """Return the vector (D,), made of length 1."""
        with runtime_errors(f'{self.place} failed'):
            (found,) = self._session.run([self._output], dict(feeds))
        values = np.asarray(found)
        if values.ndim != _TWO_DIMENSIONS or len(values) != 1 or not values.size:
            raise EncodingError(
                f'{self.place} puts out {self._output[:80]!r} of shape {values.shape} for one '
                f'input; it must be (1, length); {_EXPORT}'
            )
        vector = values[0].astype(float)
        if not np.isfinite(vector).all():
            raise EncodingError(
                f'{self.place} puts out what is no number; export it in float32, or correct mean '
                'and deviation of its input'
            )
        # Squares of the largest values would be infinite.
        vector = vector / max(float(np.abs(vector).max()), _TINY)
        return np.asarray(vector / max(float(np.linalg.norm(vector)), _TINY), np.float32)


def _opened_tokenizer(file: BundleFile, length: int) -> Any:
    """Open the tokenizer, which cuts texts to a length.

    :raises EncodingError: if it is none, or the package for it is missing
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as err:
        raise EncodingError(
            'the words of an encoder of your own need the package tokenizers, which is not here; '
            'pip install tokenizers'
        ) from err
    path = file.verified(('.json',))
    content = read_bounded(path, _LARGEST_TOKENIZER, EncodingError, _TOKENIZER)
    with runtime_errors(f'{path} cannot be opened ({_TOKENIZER})'), _panics():
        tokenizer = Tokenizer.from_str(content.decode())
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length=length)
    return tokenizer


@contextmanager
def _panics() -> Iterator[None]:
    """Turn a panic of the package tokenizers, which is no Exception, into a RuntimeError."""
    try:
        yield
    except BaseException as err:
        if type(err).__name__ != 'PanicException':
            raise
        raise RuntimeError(str(err)) from err


def _filled(picture: Image, form: CropForm) -> Image:
    """Return a picture (H, W, 3) BGR in the middle of a square of the mean colour."""
    height, width = picture.shape[:2]
    missing = [max(height, width) - side for side in (height, width)]
    before = [side // 2 for side in missing]
    mean = form.mean[::-1] if form.rgb else form.mean
    colour = [float(np.clip(round(255.0 * value), 0, 255)) for value in mean]
    return np.asarray(
        cv2.copyMakeBorder(
            np.ascontiguousarray(picture),
            *(before[0], missing[0] - before[0], before[1], missing[1] - before[1]),
            cv2.BORDER_CONSTANT,
            value=colour,
        ),
        np.uint8,
    )


def _listed(names: list[str]) -> str:
    return ', '.join(repr(name[:80]) for name in names[:20]) or 'nothing'
