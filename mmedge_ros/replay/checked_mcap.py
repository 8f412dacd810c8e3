"""MCAP files with checksums, which `rosbags` verifies but does not write.

Every chunk carries the CRC of its messages, and the footer that of the summary behind them.
"""

from __future__ import annotations

import struct
from binascii import crc32
from pathlib import Path

from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.storage_mcap import McapWriter

# From the beginning of a chunk to its CRC: opcode, length, times and size.
_CHUNK_CRC_AT = struct.calcsize('<BQQQQ')
_CRC = struct.Struct('<I')
# At the end of a file: the footer's opcode and length, where the summary and its offsets begin,
# the CRC of all from there to here, and the magic.
_FOOTER = struct.Struct('<BQQQI8s')
_FOOTER_OPCODE = 2
_CRC_FROM_END = _CRC.size + 8


class CheckedMcapWriter(McapWriter):
    """Writes as `rosbags` does, and enters the checksums it leaves at 0."""

    def close_chunk(self) -> None:
        begin, crc = self.bio.tell(), crc32(self.chunk.bio.getvalue())
        super().close_chunk()
        end = self.bio.tell()
        self.bio.seek(begin + _CHUNK_CRC_AT)
        self.bio.write(_CRC.pack(crc))
        self.bio.seek(end)

    def close(self, version: int, metadata: str) -> None:
        super().close(version, metadata)
        crc = summary_checksums(self.path)[1]
        with self.path.open('r+b') as file:
            file.seek(-_CRC_FROM_END, 2)
            file.write(_CRC.pack(crc))


class CheckedWriter(Writer):
    """A recording of `rosbags` whose MCAP files carry checksums."""

    STORAGE_PLUGINS = {  # noqa: RUF012  # as the base declares it
        **Writer.STORAGE_PLUGINS,
        StoragePlugin.MCAP: CheckedMcapWriter,
    }


def summary_checksums(path: Path) -> tuple[int, int]:
    """Return the CRC of the summary as the footer has it (0: none), and as it is.

    :raises ValueError: if there is no footer that could be true
    :raises OSError: if the file cannot be read
    """
    with path.open('rb') as file:
        size = file.seek(0, 2)
        file.seek(max(size - _FOOTER.size, 0))
        tail = file.read()
        if len(tail) != _FOOTER.size:
            raise ValueError('it has no footer')
        opcode, _, begin, _, crc, _ = _FOOTER.unpack(tail)
        if opcode != _FOOTER_OPCODE or not begin <= size - _FOOTER.size:
            raise ValueError('its footer is damaged')
        if not begin:
            return 0, 0  # there is no summary
        file.seek(begin)
        return crc, crc32(file.read(size - _CRC_FROM_END - begin))
