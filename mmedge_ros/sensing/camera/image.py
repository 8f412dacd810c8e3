"""Pictures from sensor_msgs/Image and sensor_msgs/CompressedImage.

Messages are duck-typed: an rclpy message and a rosbags object have the same attributes.
Names and layouts of encodings are those of sensor_msgs/image_encodings.hpp.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.sensing import SensingError, byte_view

Picture = NDArray[np.uint8]

# Of 16-bit grey: what darker and brighter pixels than these shares are is cut off. Fewer steps
# than the least are noise. Every eighth pixel each way is looked at.
_DARKEST, _BRIGHTEST, _LEAST_STEPS, _LOOK = 0.5, 99.5, 64.0, 8
_PNG_DEPTH_AT = 24
_COLOUR = 3

# A header can claim any size; beyond this a decoder would be made to fill the memory.
MAX_PIXELS = 64_000_000

_PNG_MAGIC = b'\x89PNG\r\n\x1a\n'
_JPEG_MAGIC = b'\xff\xd8'
_JPEG_END = b'\xff\xd9'
_JPEG_SCAN = 0xDA
# Frame headers (SOF0..SOF15) without DHT, JPG and DAC, which share the range.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# TEM and RST0..RST7 stand alone; all other markers are followed by a length.
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD8)})
# Cameras write about ten; the limit keeps megabytes of fill bytes from costing seconds.
_MAX_JPEG_SEGMENTS = 1000


class PictureFormat(NamedTuple):
    """Size in pixels and encoding of a picture: ``jpeg``, ``png`` or the name of a raw one."""

    width: int
    height: int
    encoding: str


class _Encoding(NamedTuple):
    """Memory layout of a raw encoding and the conversion of its array to (H, W, 3) BGR."""

    bytes_per_pixel: int
    channels: int
    to_bgr: Callable[[Picture], Any]


def _cvt(code: int) -> Callable[[Picture], Any]:
    return lambda picture: cv2.cvtColor(np.ascontiguousarray(picture), code)


def _same(picture: Picture) -> Picture:
    return picture


_GREY = _Encoding(1, 1, _cvt(cv2.COLOR_GRAY2BGR))
_GREY_16 = _Encoding(2, 1, _cvt(cv2.COLOR_GRAY2BGR))
_BGR = _Encoding(3, 3, _same)
_YUYV = _Encoding(2, 2, _cvt(cv2.COLOR_YUV2BGR_YUYV))
_UYVY = _Encoding(2, 2, _cvt(cv2.COLOR_YUV2BGR_UYVY))
_NV12 = _Encoding(1, 1, _cvt(cv2.COLOR_YUV2BGR_NV12))
_NV21 = _Encoding(1, 1, _cvt(cv2.COLOR_YUV2BGR_NV21))
# Of 16 bits: scaled to eight first, an alpha channel left out.
_DEEP = {
    'mono16': _GREY_16,
    '16UC1': _GREY_16,
    'bgr16': _Encoding(6, 3, _same),
    'rgb16': _Encoding(6, 3, _cvt(cv2.COLOR_RGB2BGR)),
    'bgra16': _Encoding(8, 4, _same),
    'rgba16': _Encoding(8, 4, _cvt(cv2.COLOR_RGB2BGR)),
}

_ENCODINGS = {
    'bgr8': _BGR,
    '8UC3': _BGR,
    'rgb8': _Encoding(3, 3, _cvt(cv2.COLOR_RGB2BGR)),
    'bgra8': _Encoding(4, 4, _cvt(cv2.COLOR_BGRA2BGR)),
    '8UC4': _Encoding(4, 4, _cvt(cv2.COLOR_BGRA2BGR)),
    'rgba8': _Encoding(4, 4, _cvt(cv2.COLOR_RGBA2BGR)),
    'mono8': _GREY,
    '8UC1': _GREY,
    **_DEEP,
    'yuyv': _YUYV,
    'yuv422_yuy2': _YUYV,
    'uyvy': _UYVY,
    'yuv422': _UYVY,
    'nv12': _NV12,
    'nv21': _NV21,
    # OpenCV names a Bayer pattern by the pixels one to the right and one down.
    'bayer_rggb8': _Encoding(1, 1, _cvt(cv2.COLOR_BayerBG2BGR)),
    'bayer_bggr8': _Encoding(1, 1, _cvt(cv2.COLOR_BayerRG2BGR)),
    'bayer_gbrg8': _Encoding(1, 1, _cvt(cv2.COLOR_BayerGR2BGR)),
    'bayer_grbg8': _Encoding(1, 1, _cvt(cv2.COLOR_BayerGB2BGR)),
}
SUPPORTED_ENCODINGS = tuple(_ENCODINGS)


def decode_image(message: Any) -> Picture:
    """Return the picture of an Image or CompressedImage as (H, W, 3) uint8, BGR.

    A ``bgr8`` picture is a view of the message's data (read-only where that is), everything
    is converted. 16-bit grey is scaled so that what the picture holds fills eight bits: cameras
    use 10, 12 or 14 of them. The orientation tag of a JPEG is ignored: camera_info describes the
    sensor's own pixel grid.

    :raises SensingError: for unknown encodings, depth instead of a picture, sizes that do not fit
        the data, more than ``MAX_PIXELS`` pixels, and damaged or truncated JPEG and PNG data
    """
    if hasattr(message, 'encoding'):
        return _decode_raw(message)
    return _decode_compressed(message)


def decode_half_grey(message: Any) -> Picture:
    """Return the picture of an Image or CompressedImage in grey, at half its size, uint8.

    An odd side is rounded up. A JPEG costs a third of `decode_image`: its decoder halves it.

    :raises SensingError: as `decode_image` does
    """
    if hasattr(message, 'encoding'):
        return half_grey(_decode_raw(message))
    return _decode_compressed(message, cv2.IMREAD_REDUCED_GRAYSCALE_2)


def half_grey(picture: Picture) -> Picture:
    """Return a picture (H, W, 3) BGR in grey at half its size; an odd side is rounded up."""
    size = ((picture.shape[1] + 1) // 2, (picture.shape[0] + 1) // 2)
    if not picture.size:
        return np.zeros(size[::-1], np.uint8)
    grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.uint8)


def quick_format(message: Any) -> PictureFormat:
    """Return size and encoding of an Image or CompressedImage without decoding it.

    :raises SensingError: if the message names no supported format or an absurd size
    """
    if hasattr(message, 'encoding'):
        _encoding_of(message)
        kind = PictureFormat(int(message.width), int(message.height), str(message.encoding))
    else:
        data = byte_view(message.data, 'compressed image')
        kind = _compressed_format(data, str(message.format))
    _check_size(kind)
    return kind


def _check_size(picture: PictureFormat) -> None:
    width, height, encoding = picture
    if width <= 0 or height <= 0 or width * height > MAX_PIXELS:
        raise SensingError(
            f'{encoding} image of {width} x {height} px; '
            f'both sides must be positive and the product at most {MAX_PIXELS}'
        )


def _encoding_of(message: Any) -> _Encoding:
    try:
        return _ENCODINGS[message.encoding]
    except (KeyError, TypeError):
        raise SensingError(
            f'image encoding {message.encoding!r} is not supported; '
            f'let the camera driver send one of {", ".join(SUPPORTED_ENCODINGS)}'
        ) from None


def _decode_raw(message: Any) -> Picture:
    width, height, name = quick_format(message)
    encoding = _ENCODINGS[name]
    # Those keep one row of interleaved colour below every two rows of brightness.
    is_planar = encoding in (_NV12, _NV21)
    if (is_planar or encoding in (_YUYV, _UYVY)) and (width % 2 or (is_planar and height % 2)):
        raise SensingError(f'{name} image of {width} x {height} px; its sides must be even')
    rows = height * 3 // 2 if is_planar else height
    row_bytes = width * encoding.bytes_per_pixel
    data, step = byte_view(message.data, f'{name} image'), int(message.step)
    if step < row_bytes or data.size != step * rows:
        raise SensingError(
            f'{name} image of {width} x {height} px has {data.size} bytes with step {step}; '
            f'expected {rows} rows of {row_bytes} bytes or more'
        )
    picture = data.reshape(rows, step)[:, :row_bytes]
    if name in _DEEP:
        _refuse_depth(message)
        order = '>u2' if message.is_bigendian else '<u2'
        deep = np.ascontiguousarray(picture).view(order).reshape(rows, width, encoding.channels)
        picture = _eight_bits(deep[:, :, :_COLOUR])
    elif encoding.channels > 1:
        picture = picture.reshape(rows, width, encoding.channels)
    converted: Picture = encoding.to_bgr(picture)
    return converted


def _refuse_depth(message: Any) -> None:
    """Refuse distances that come as a picture does; drivers name their frame so."""
    frame_id = str(message.header.frame_id)
    if message.encoding == '16UC1' and 'depth' in frame_id.lower():
        raise SensingError(
            f'a 16UC1 image in {frame_id[:64]!r} holds distances and is no picture; name the '
            'topic of the colour or infrared camera'
        )


def _eight_bits(deep: NDArray[np.uint16]) -> Picture:
    """Scale a 16-bit picture so that nearly all that it holds fills 0 to 255."""
    low, high = np.percentile(deep[::_LOOK, ::_LOOK], (_DARKEST, _BRIGHTEST))
    scale = 255.0 / max(high - low, _LEAST_STEPS)
    scaled = (deep.astype(np.float32) - np.float32(low)) * np.float32(scale)
    return np.asarray(np.clip(scaled, 0.0, 255.0), np.uint8)


def _decode_compressed(message: Any, how: int = cv2.IMREAD_COLOR) -> Picture:
    kind = quick_format(message)
    data = byte_view(message.data, 'compressed image')
    is_deep = kind.encoding == 'png' and data[_PNG_DEPTH_AT] == 16  # bits
    try:
        if is_deep:
            deep = _deep_png(data)
            return deep if how == cv2.IMREAD_COLOR else half_grey(deep)
        picture = cv2.imdecode(data, how | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise SensingError(f'damaged {kind.encoding} image ({error})') from error
    expected: tuple[int, ...] = (kind.height, kind.width, 3)
    if how == cv2.IMREAD_REDUCED_GRAYSCALE_2:
        expected = ((kind.height + 1) // 2, (kind.width + 1) // 2)
    if picture is None or picture.shape != expected:
        raise SensingError(f'damaged {kind.encoding} image: the decoder refuses it')
    decoded: Picture = np.asarray(picture, np.uint8)
    return decoded


def _deep_png(data: Picture) -> Picture:
    """Decode a PNG of 16 bits per channel; colours are scaled alike."""
    deep = cv2.imdecode(data, cv2.IMREAD_ANYDEPTH | cv2.IMREAD_ANYCOLOR)
    if deep is None or deep.dtype != np.uint16:
        raise SensingError('damaged png image: the decoder refuses it')
    scaled = _eight_bits(np.asarray(deep, np.uint16))
    return scaled if scaled.ndim == _COLOUR else np.asarray(_GREY.to_bgr(scaled), np.uint8)


def _compressed_format(data: Picture, claimed: str) -> PictureFormat:
    head = data[:8].tobytes()
    if head.startswith(_JPEG_MAGIC):
        return _jpeg_format(data.tobytes())
    if head == _PNG_MAGIC:
        return _png_format(data.tobytes())
    kind = 'no data' if data.size == 0 else f'data beginning with {head.hex()}'
    raise SensingError(
        f'compressed image (format {claimed[:64]!r}) has {kind}; only jpeg and png are supported'
    )


def _png_format(data: bytes) -> PictureFormat:
    if len(data) <= _PNG_DEPTH_AT or data[12:16] != b'IHDR':
        raise SensingError('damaged png image: it does not begin with its header chunk')
    if data.rfind(b'IEND') < 0:
        raise SensingError('truncated png image: it has no end chunk')
    width, height = struct.unpack_from('>II', data, 16)
    return PictureFormat(width, height, 'png')


def _jpeg_format(data: bytes) -> PictureFormat:
    """Walk the segments of a JPEG (ITU-T T.81, annex B) up to the compressed scan."""
    at, size = 2, None
    for _ in range(_MAX_JPEG_SEGMENTS):
        if at + 4 > len(data) or data[at] != 0xFF:
            break
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        elif marker == _JPEG_SCAN:
            break
        else:
            if marker in _JPEG_FRAMES and at + 9 <= len(data):
                size = struct.unpack_from('>HH', data, at + 5)
            at += 2 + struct.unpack_from('>H', data, at + 2)[0]
    if size is None:
        raise SensingError('damaged jpeg image: it has no frame header')
    # The decoder only warns about a cut picture and fills the rest with grey.
    if data.rfind(_JPEG_END, at) < 0:
        raise SensingError('truncated jpeg image: it has no end marker')
    return PictureFormat(size[1], size[0], 'jpeg')
