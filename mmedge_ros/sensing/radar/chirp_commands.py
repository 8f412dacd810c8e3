"""Commands of TI's mmWave out-of-box demo: which there are, and how many numbers each takes.

Three dialects differ in that: SDK 1, and SDK 2 on xWR14xx, know no subframes; SDK 2 on later
parts puts a subframe number first; SDK 3 also gives thresholds in dB and new commands.
Source: the command tables of the mmWave SDK user's guides 1.2, 2.1 and 3.6.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from mmedge_ros.core.untrusted_files import shown
from mmedge_ros.sensing import SensingError

MAX_LINES = 1000
MAX_LINE_LENGTH = 500
_LARGEST = 1e9
_NUMBER = re.compile(r'[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,2})?')


class Dialect(Enum):
    """How commands are written; the value is what people call it."""

    PLAIN = 'SDK 1, or SDK 2 on xWR14xx'
    INDEXED = 'SDK 2'
    SDK_3 = 'SDK 3'

    def fits(self, version: tuple[int, ...], platform: str) -> bool:
        """Say whether a board of this SDK version and platform understands it.

        A platform that is not known, '', may be any.
        """
        major = version[0] if version else 0
        if self is Dialect.SDK_3:
            return major >= 3
        if self is Dialect.INDEXED:
            return major in (1, 2) and '14' not in platform
        return major == 1 or (major == 2 and (not platform or '14' in platform))


class BoardVersion(NamedTuple):
    """What a board says of itself; empty where it says nothing."""

    sdk: tuple[int, ...] = ()
    platform: str = ''

    def __str__(self) -> str:
        number = '.'.join(str(part) for part in self.sdk) or 'unknown'
        return f'SDK {number} on {self.platform or "an unknown platform"}'


class Command(NamedTuple):
    """One command of a configuration with the line it stands on."""

    line: int
    name: str
    numbers: tuple[float, ...]
    text: str


_Counts = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _all(*counts: int) -> _Counts:
    return counts, counts, counts


# Possible numbers of arguments in the order of the dialects; none: not a command there.
_OF_OTHER_DEMOS = frozenset(
    {
        'AllocationParam',
        'GatingParam',
        'MaxAcceleration',
        'SceneryParam',
        'StateParam',
        'boundaryBox',
        'doaCfg',
        'dynamic2DAngleCfg',
        'dynamicRACfarCfg',
        'dynamicRangeAngleCfg',
        'fovCfg',
        'presenceBoundaryBox',
        'sensorPosition',
        'staticBoundaryBox',
        'staticRACfarCfg',
        'staticRangeAngleCfg',
        'trackingCfg',
    }
)
_COMMANDS: dict[str, _Counts] = {
    'sensorStop': _all(0),
    'sensorStart': _all(0, 1),
    'flushCfg': _all(0),
    'version': _all(0),
    'dfeDataOutputMode': _all(1),
    'channelCfg': _all(3),
    'adcCfg': _all(2),
    'adcbufCfg': ((4,), (5,), (5,)),
    'profileCfg': _all(14),
    'chirpCfg': _all(8),
    'frameCfg': _all(7),
    'advFrameCfg': _all(5),
    'subFrameCfg': _all(10),
    'lowPower': _all(2),
    'guiMonitor': ((6,), (7,), (7,)),
    'cfarCfg': ((7,), (8,), (9,)),
    'peakGrouping': ((5,), (6,), ()),
    'multiObjBeamForming': ((2,), (3,), (3,)),
    'clutterRemoval': ((1,), (2,), (2,)),
    'calibDcRangeSig': ((4,), (5,), (5,)),
    'extendedMaxVelocity': ((), (2,), (2,)),
    'bpmCfg': ((), (4,), (4,)),
    'lvdsStreamCfg': ((), (4,), (4,)),
    'nearFieldCfg': ((), (4,), (4,)),
    # The bias, then real and imaginary part per virtual antenna.
    'compRangeBiasAndRxChanPhase': _all(9, 17, 25),
    'measureRangeBiasAndRxChanPhase': _all(3),
    'CQRxSatMonitor': _all(5),
    'CQSigImgMonitor': _all(3),
    'analogMonitor': _all(2),
    'aoaFovCfg': ((), (), (5,)),
    'cfarFovCfg': ((), (), (4,)),
    'calibData': ((), (), (3,)),
    'configDataPort': ((), (), (2,)),
    'queryDemoStatus': ((), (), (0,)),
}


def argument_counts(name: str, dialect: Dialect) -> tuple[int, ...]:
    """Return how many numbers a command may have; none where the dialect has no such command."""
    return _COMMANDS.get(name, ((), (), ()))[list(Dialect).index(dialect)]


def read_commands(text: str, source: str) -> list[Command]:
    """Return the commands of a configuration; what follows % or # is a comment.

    :param source: names the text in errors
    :raises SensingError: for a line that is no command, with its number and the reason
    """
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        raise SensingError(
            f'{source}: {len(lines)} lines; a configuration has at most {MAX_LINES}'
        )
    commands = []
    for number, line in enumerate(lines, 1):
        words = re.split('[%#]', line[: MAX_LINE_LENGTH + 1], maxsplit=1)[0].split()
        if not words:
            continue
        place = f'{source} line {number}'
        if len(line) > MAX_LINE_LENGTH:
            raise SensingError(f'{place}: longer than {MAX_LINE_LENGTH} characters')
        name = words[0]
        if name in _OF_OTHER_DEMOS:
            raise SensingError(
                f"{place}: {name} is a command of TI's people tracking demos; flash the mmWave "
                'out-of-box demo, and take a configuration for that'
            )
        if name not in _COMMANDS:
            near = difflib.get_close_matches(name, _COMMANDS, n=1, cutoff=0.0)[0]
            raise SensingError(
                f'{place}: unknown command {shown(name)}; the nearest one is {near!r}'
            )
        numbers = tuple(_number(word, f'{place}: {name}') for word in words[1:])
        commands.append(Command(number, name, numbers, ' '.join(words)))
    if not commands:
        raise SensingError(f'{source}: holds no command; is it a .cfg file of the mmWave demo?')
    return commands


def dialect_of(commands: Iterable[Command], source: str, sdk: str = '') -> Dialect:
    """Return the dialect that all commands fit.

    :param sdk: version the file says it was made for, such as 02.01; decides between several
    :raises SensingError: if none fits, naming the line that does not
    """
    commands = list(commands)
    misfits = {dialect: _misfits(commands, dialect) for dialect in Dialect}
    fitting = [dialect for dialect, wrong in misfits.items() if not wrong]
    major = int(sdk.partition('.')[0]) if sdk else 0
    claimed = [dialect for dialect in Dialect if dialect.fits((major,), '')]
    if fitting:
        return next((d for d in claimed if d in fitting), fitting[-1])
    likely = min(claimed or Dialect, key=lambda dialect: len(misfits[dialect]))
    command = misfits[likely][0]
    counts = argument_counts(command.name, likely)
    place = f'{source} line {command.line}: {command.name}'
    if not counts:
        raise SensingError(
            f'{place} does not exist in {likely.value}, which the rest is written for'
        )
    expected = ' or '.join(str(count) for count in counts)
    raise SensingError(
        f'{place} has {len(command.numbers)} numbers; {likely.value}, which the rest is written '
        f'for, takes {expected}'
    )


def _misfits(commands: Iterable[Command], dialect: Dialect) -> list[Command]:
    return [c for c in commands if len(c.numbers) not in argument_counts(c.name, dialect)]


def _number(word: str, place: str) -> float:
    value = float(word) if _NUMBER.fullmatch(word) and word.isascii() else math.nan
    if not abs(value) <= _LARGEST:
        raise SensingError(f'{place}: {shown(word)} is not a number a radar takes')
    return value
