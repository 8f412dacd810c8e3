"""Pictures out of messages."""

from __future__ import annotations

import array
import struct
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import (
    MAX_PIXELS,
    SUPPORTED_ENCODINGS,
    PictureFormat,
    decode_half_grey,
    decode_image,
    half_grey,
    quick_format,
)

WIDTH, HEIGHT = 16, 12
BGR = (200, 100, 50)


def raw(encoding: str, data: Any, step: int, **changes: Any) -> SimpleNamespace:
    message = SimpleNamespace(
        header=SimpleNamespace(frame_id='camera_optical_frame'),
        width=WIDTH,
        height=HEIGHT,
        encoding=encoding,
        is_bigendian=0,
        step=step,
        data=data,
    )
    vars(message).update(changes)
    return message


def compressed(data: Any, name: str = 'bgr8; jpeg compressed bgr8') -> SimpleNamespace:
    return SimpleNamespace(format=name, data=data)


def gradient() -> NDArray[np.uint8]:
    """A smooth picture whose three channels differ."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    return np.stack([10 * x, 15 * y, 5 * (x + y)], axis=-1).astype(np.uint8)


def jpeg(picture: NDArray[np.uint8]) -> bytes:
    return cv2.imencode('.jpg', picture, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes()


def png(picture: NDArray[Any]) -> bytes:
    return cv2.imencode('.png', picture)[1].tobytes()


@pytest.mark.parametrize('container', [bytes, bytearray, memoryview, np.frombuffer, array.array])
def test_bgr_is_a_view_of_the_message_whatever_holds_its_bytes(container: Any) -> None:
    content = gradient().tobytes()
    if container is array.array:
        data = array.array('B', content)
    elif container is np.frombuffer:
        data = np.frombuffer(content, np.uint8)
    else:
        data = container(content)
    picture = decode_image(raw('bgr8', data, 3 * WIDTH))
    np.testing.assert_array_equal(picture, gradient())
    assert np.shares_memory(picture, np.frombuffer(data, np.uint8))


def packed(encoding: str) -> tuple[NDArray[Any], int]:
    """Return the gradient in a raw encoding that keeps all its colours, and bytes per pixel."""
    codes = {
        'bgr8': None,
        '8UC3': None,
        'rgb8': cv2.COLOR_BGR2RGB,
        'bgra8': cv2.COLOR_BGR2BGRA,
        '8UC4': cv2.COLOR_BGR2BGRA,
        'rgba8': cv2.COLOR_BGR2RGBA,
    }
    code = codes[encoding]
    picture = gradient() if code is None else cv2.cvtColor(gradient(), code)
    return picture.reshape(HEIGHT, -1), picture.shape[2]


@pytest.mark.parametrize('encoding', ['bgr8', '8UC3', 'rgb8', 'bgra8', '8UC4', 'rgba8'])
@pytest.mark.parametrize('padding', [0, 5])
def test_colours_come_out_as_bgr_and_row_padding_is_left_out(encoding: str, padding: int) -> None:
    rows, size = packed(encoding)
    padded = np.pad(rows, ((0, 0), (0, padding)), constant_values=77)
    picture = decode_image(raw(encoding, padded.tobytes(), size * WIDTH + padding))
    np.testing.assert_array_equal(picture, gradient())
    assert picture.dtype == np.uint8


@pytest.mark.parametrize('encoding', ['mono8', '8UC1'])
def test_grey_becomes_three_equal_channels(encoding: str) -> None:
    grey = gradient()[..., 0]
    picture = decode_image(raw(encoding, grey.tobytes(), WIDTH))
    np.testing.assert_array_equal(picture, np.repeat(grey[..., None], 3, axis=2))


@pytest.mark.parametrize('encoding', ['mono16', '16UC1'])
@pytest.mark.parametrize('big_endian', [0, 1])
@pytest.mark.parametrize('padding', [0, 6])
@pytest.mark.parametrize('bits', [10, 12, 16])
def test_deep_grey_is_scaled_to_what_the_picture_holds(
    encoding: str, big_endian: int, padding: int, bits: int
) -> None:
    grey = np.linspace(0, 255, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH).round().astype(np.uint8)
    deep = (grey.astype(np.uint16) << (bits - 8)) | 1
    rows = deep.astype('>u2' if big_endian else '<u2').view(np.uint8).reshape(HEIGHT, -1)
    data = np.pad(rows, ((0, 0), (0, padding))).tobytes()
    message = raw(encoding, data, 2 * WIDTH + padding, is_bigendian=big_endian)
    seen = decode_image(message)[..., 1]
    assert seen[:1].max() < 40
    assert seen[-1:].min() > 215
    assert (np.diff(seen.ravel().astype(int)) >= 0).all()


def test_one_hot_pixel_does_not_darken_deep_grey() -> None:
    deep = np.tile(np.arange(256, dtype='<u2') * 4, (256, 1))
    deep[0, 0] = 0xFFFF
    picture = decode_image(raw('mono16', deep.tobytes(), 512, width=256, height=256))
    assert int(picture[100, 128, 0]) == pytest.approx(128, abs=8)


def test_deep_grey_without_contrast_does_not_become_noise() -> None:
    deep = np.random.default_rng(1).integers(500, 508, (HEIGHT, WIDTH)).astype('<u2')
    assert np.ptp(decode_image(raw('mono16', deep.tobytes(), 2 * WIDTH))) < 40


def test_distances_are_no_picture() -> None:
    message = raw('16UC1', bytes(2 * WIDTH * HEIGHT), 2 * WIDTH)
    message.header.frame_id = 'camera_depth_optical_frame'
    with pytest.raises(SensingError, match='holds distances and is no picture; name the topic'):
        decode_image(message)


def luma_and_chroma() -> tuple[int, int, int]:
    """Return Y, U and V of the one colour the YUV tests use."""
    y, u, v = cv2.cvtColor(np.full((2, 2, 3), BGR, np.uint8), cv2.COLOR_BGR2YUV_I420).flat[
        [0, 4, 5]
    ]
    return int(y), int(u), int(v)


@pytest.mark.parametrize(
    ('encoding', 'order'),
    [('yuyv', 'yuyv'), ('yuv422_yuy2', 'yuyv'), ('uyvy', 'uyvy'), ('yuv422', 'uyvy')],
)
@pytest.mark.parametrize('padding', [0, 4])
def test_packed_yuv_is_converted(encoding: str, order: str, padding: int) -> None:
    y, u, v = luma_and_chroma()
    pair = bytes([y, u, y, v] if order == 'yuyv' else [u, y, v, y])
    data = (pair * (WIDTH // 2) + bytes(padding)) * HEIGHT
    picture = decode_image(raw(encoding, data, 2 * WIDTH + padding))
    assert picture.shape == (HEIGHT, WIDTH, 3)
    np.testing.assert_allclose(picture, np.full_like(picture, 1) * BGR, atol=4)


def test_deep_colour_is_scaled_as_one_and_its_alpha_left_out() -> None:
    deep = np.zeros((HEIGHT, WIDTH, 4), '<u2')
    deep[..., 0] = np.linspace(0, 4000, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)
    deep[..., 3] = 65535
    picture = decode_image(raw('bgra16', deep.tobytes(), 8 * WIDTH))
    assert picture.shape == (HEIGHT, WIDTH, 3)
    assert (picture[..., 0].min(), picture[..., 0].max(), picture[..., 1:].max()) == (0, 255, 0)
    np.testing.assert_array_equal(
        decode_image(raw('rgba16', deep.tobytes(), 8 * WIDTH)), picture[..., ::-1]
    )


def test_nv12_is_converted() -> None:
    y, u, v = luma_and_chroma()
    data = bytes([y]) * (WIDTH * HEIGHT) + bytes([u, v]) * (WIDTH * HEIGHT // 4)
    picture = decode_image(raw('nv12', data, WIDTH))
    assert picture.shape == (HEIGHT, WIDTH, 3)
    np.testing.assert_allclose(picture, np.full_like(picture, 1) * BGR, atol=4)


@pytest.mark.parametrize('pattern', ['rggb', 'bggr', 'gbrg', 'grbg'])
def test_bayer_patterns_are_told_apart(pattern: str) -> None:
    value = dict(zip('bgr', BGR, strict=True))
    tile = np.array([[value[c] for c in pattern[:2]], [value[c] for c in pattern[2:]]], np.uint8)
    mosaic = np.tile(tile, (HEIGHT // 2, WIDTH // 2))
    picture = decode_image(raw(f'bayer_{pattern}8', mosaic.tobytes(), WIDTH))
    np.testing.assert_allclose(picture[2:-2, 2:-2], np.full_like(picture, 1)[2:-2, 2:-2] * BGR)


def test_an_unknown_encoding_names_the_supported_ones() -> None:
    with pytest.raises(SensingError, match=r"'32FC1' is not supported.*bgr8.*nv12"):
        decode_image(raw('32FC1', bytes(4 * WIDTH * HEIGHT), 4 * WIDTH))
    assert 'bayer_rggb8' in SUPPORTED_ENCODINGS


@pytest.mark.parametrize(
    'message',
    [
        raw('bgr8', bytes(3 * WIDTH * HEIGHT - 1), 3 * WIDTH),
        raw('bgr8', bytes(3 * WIDTH * HEIGHT + 1), 3 * WIDTH),
        raw('bgr8', b'', 3 * WIDTH),
        raw('bgr8', bytes(3 * WIDTH * HEIGHT), 3 * WIDTH - 1),
        raw('bgr8', bytes(3 * WIDTH * HEIGHT), 0),
        raw('mono16', bytes(WIDTH * HEIGHT), WIDTH),
        raw('nv12', bytes(WIDTH * HEIGHT), WIDTH),
    ],
)
def test_sizes_that_do_not_fit_are_an_error(message: SimpleNamespace) -> None:
    with pytest.raises(SensingError, match=rf'{WIDTH} x {HEIGHT} px has \d+ bytes with step'):
        decode_image(message)


@pytest.mark.parametrize('encoding', ['yuyv', 'nv12'])
def test_odd_sides_are_an_error_where_pixels_share_colour(encoding: str) -> None:
    with pytest.raises(SensingError, match='must be even'):
        decode_image(raw(encoding, bytes(1000), 40, width=15))


@pytest.mark.parametrize(('width', 'height'), [(0, 12), (16, 0), (2**31, 2**31), (8001, 8001)])
def test_absurd_sizes_are_refused_before_anything_is_allocated(width: int, height: int) -> None:
    with pytest.raises(SensingError, match=str(MAX_PIXELS)):
        decode_image(raw('mono8', bytes(10), width, width=width, height=height))


def test_data_that_is_no_buffer_is_an_error() -> None:
    with pytest.raises(SensingError, match='list, not a buffer'):
        decode_image(raw('mono8', [1, 2, 3], WIDTH))


@pytest.mark.parametrize('encode', [jpeg, png])
def test_compressed_pictures_are_decoded_to_bgr(encode: Any) -> None:
    message = compressed(array.array('B', encode(gradient())))
    np.testing.assert_allclose(decode_image(message), gradient().astype(int), atol=20)


def test_a_grey_png_of_sixteen_bits_is_decoded_to_bgr() -> None:
    deep = gradient()[..., 0].astype(np.uint16) << 3
    message = compressed(png(deep), '16UC1; png compressed')
    picture = decode_image(message)
    assert picture.shape == (HEIGHT, WIDTH, 3)
    assert np.ptp(picture) > 200
    assert decode_half_grey(message).shape == (HEIGHT // 2, WIDTH // 2)
    assert decode_image(compressed(png(np.dstack([deep, deep, deep])))).shape == picture.shape


def with_exif_orientation(data: bytes, orientation: int) -> bytes:
    tag = struct.pack('>HHIHH', 0x0112, 3, 1, orientation, 0)
    exif = b'Exif\0\0MM\0*\0\0\0\x08' + struct.pack('>H', 1) + tag + bytes(4)
    return data[:2] + b'\xff\xe1' + struct.pack('>H', len(exif) + 2) + exif + data[2:]


def test_the_orientation_tag_does_not_turn_the_pixel_grid() -> None:
    turned = with_exif_orientation(jpeg(gradient()), 6)
    flags = cv2.IMREAD_COLOR
    assert cv2.imdecode(np.frombuffer(turned, np.uint8), flags).shape[:2] == (WIDTH, HEIGHT)
    assert decode_image(compressed(turned)).shape == (HEIGHT, WIDTH, 3)


@pytest.mark.parametrize('encode', [jpeg, png])
@pytest.mark.parametrize('share', [0.05, 0.3, 0.6, 0.9])
def test_a_truncated_picture_is_an_error(encode: Any, share: float) -> None:
    random = np.random.default_rng(3).integers(0, 255, (48, 64, 3), np.uint8)
    data = encode(random)
    with pytest.raises(SensingError, match=r'truncated|damaged'):
        decode_image(compressed(data[: int(share * len(data))]))


def test_padding_behind_a_jpeg_does_no_harm() -> None:
    assert decode_image(compressed(jpeg(gradient()) + bytes(500))).shape == (HEIGHT, WIDTH, 3)


@pytest.mark.parametrize(
    'data', [b'', b'\xff', b'\x00' * 40, b'GIF89a' + bytes(40), b'RIFF0000WEBP']
)
def test_other_data_names_the_supported_formats(data: bytes) -> None:
    with pytest.raises(SensingError, match='only jpeg and png are supported'):
        decode_image(compressed(data))


def test_a_decompression_bomb_is_refused_by_its_header() -> None:
    data = bytearray(png(gradient()))
    data[16:24] = struct.pack('>II', 60_000, 60_000)
    with pytest.raises(SensingError, match='png image of 60000 x 60000 px'):
        decode_image(compressed(bytes(data)))
    small = jpeg(gradient())
    at = small.index(b'\xff\xc0') + 5
    large = small[:at] + struct.pack('>HH', 60_000, 60_000) + small[at + 4 :]
    with pytest.raises(SensingError, match='jpeg image of 60000 x 60000 px'):
        decode_image(compressed(large))


def test_a_jpeg_full_of_fill_bytes_is_refused_quickly() -> None:
    with pytest.raises(SensingError, match='no frame header'):
        decode_image(compressed(b'\xff\xd8' + b'\xff' * 5_000_000))


@pytest.mark.parametrize('size', [(12, 16), (11, 16), (12, 15), (1, 1)])
def test_half_in_grey_is_the_same_from_a_raw_picture_a_jpeg_and_a_decoded_one(
    size: tuple[int, int],
) -> None:
    picture = cv2.resize(gradient(), size[::-1])
    message = raw('bgr8', picture.tobytes(), 3 * size[1], width=size[1], height=size[0])
    expected = half_grey(picture)
    assert expected.shape == ((size[0] + 1) // 2, (size[1] + 1) // 2)
    np.testing.assert_array_equal(decode_half_grey(message), expected)
    decoded = decode_half_grey(compressed(jpeg(picture)))
    assert decoded.shape == expected.shape
    assert np.abs(decoded.astype(float) - expected).mean() < 6.0


def test_half_of_a_picture_without_pixels_has_none() -> None:
    assert half_grey(np.zeros((0, 7, 3), np.uint8)).shape == (0, 4)


@pytest.mark.parametrize('data', [b'', b'no picture', jpeg(gradient())[:60]])
def test_half_of_a_damaged_picture_is_an_error(data: bytes) -> None:
    with pytest.raises(SensingError):
        decode_half_grey(compressed(data))


def test_the_format_is_known_without_decoding() -> None:
    assert quick_format(raw('rgb8', b'', 0)) == PictureFormat(WIDTH, HEIGHT, 'rgb8')
    assert quick_format(compressed(jpeg(gradient()))) == PictureFormat(WIDTH, HEIGHT, 'jpeg')
    assert quick_format(compressed(png(gradient()))) == PictureFormat(WIDTH, HEIGHT, 'png')


@given(
    encoding=st.sampled_from(SUPPORTED_ENCODINGS),
    data=st.binary(max_size=300),
    width=st.integers(-1, 20),
    height=st.integers(-1, 20),
    step=st.integers(-1, 70),
)
def test_any_raw_message_gives_a_picture_of_its_size_or_the_error(
    encoding: str, data: bytes, width: int, height: int, step: int
) -> None:
    message = raw(encoding, data, step, width=width, height=height)
    try:
        picture = decode_image(message)
    except SensingError:
        return
    assert picture.shape == (height, width, 3)
    assert picture.dtype == np.uint8


@settings(max_examples=300)
@given(
    encode=st.sampled_from([jpeg, png]),
    at=st.integers(0, 400),
    junk=st.binary(min_size=1, max_size=12),
)
def test_any_damage_to_a_compressed_picture_gives_its_size_or_the_error(
    encode: Any, at: int, junk: bytes
) -> None:
    data = bytearray(encode(gradient()))
    data[at : at + len(junk)] = junk
    try:
        claimed = quick_format(compressed(bytes(data)))
        picture = decode_image(compressed(bytes(data)))
    except SensingError:
        return
    assert picture.shape == (claimed.height, claimed.width, 3)
