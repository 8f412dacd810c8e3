"""The command line of a simulated radar: what the mmWave demo's shell answers to each line."""

from __future__ import annotations

from mmedge_ros.sensing.radar.chirp_commands import Dialect, argument_counts
from mmedge_ros.sensing.radar.tlv_packet import platform_name
from mmedge_ros.sensing.radar.tlv_writer import BoardIdentity

PROMPT = 'mmwDemo:/>'
DEFAULT_PERIOD = 0.1
# What a board of another SDK says to a command with the wrong number of arguments.
REFUSAL = 'Error: Invalid usage of the CLI command\nError -1\n'
# Without these the demo does not start.
_NEEDED = ('profileCfg', 'chirpCfg', 'frameCfg', 'guiMonitor', 'cfarCfg', 'channelCfg', 'adcCfg')


class BoardShell:
    """Answers commands as a board of an SDK and platform does, and remembers what they set.

    Its faults are public: ``knows_version`` is off on old firmware, ``refused`` maps the name
    of a command to the answer that it gets whatever its arguments.
    """

    def __init__(self, identity: BoardIdentity) -> None:
        self.knows_version = True
        self.refused: dict[str, str] = {}
        self._platform = platform_name(identity.platform)
        self._sdk = tuple(identity.version >> shift & 0xFF for shift in (24, 16, 8, 0))
        self._dialect = next(d for d in Dialect if d.fits(self._sdk, self._platform))
        self.reset()

    def reset(self) -> None:
        """Forget everything, as after a loss of power."""
        self.started = False
        self.period = DEFAULT_PERIOD
        self._set: set[str] = set()

    @property
    def banner(self) -> str:
        """What the board says when it has started."""
        stars = 42 * '*'
        version = '.'.join(f'{number:02d}' for number in self._sdk)
        return f'{stars}\n{self._platform} MMW Demo {version}\n{stars}\n\n{PROMPT}'

    def answer(self, line: str) -> str:
        """Return the answer to a line, up to the next prompt."""
        words = line.split()
        if not words:
            return PROMPT
        if words[0].startswith('%'):
            return f'Skipped\n{PROMPT}'
        name, arguments = words[0], words[1:]
        return self._answer(name, arguments) + f'\n{PROMPT}'

    def _answer(self, name: str, arguments: list[str]) -> str:
        if name in self.refused:
            return self.refused[name]
        counts = argument_counts(name, self._dialect)
        if not counts or (name == 'version' and not self.knows_version):
            return f"'{name}' is not recognized as a CLI command\n"
        if len(arguments) not in counts or not all(_is_number(word) for word in arguments):
            return REFUSAL
        if name == 'version':
            return self._version() + 'Done\n'
        if name == 'sensorStart':
            return self._start()
        if name == 'sensorStop':
            return self._stop()
        if name == 'flushCfg':
            self._set.clear()
        elif name == 'frameCfg':
            self.period = 1e-3 * float(arguments[4])
        self._set.add(name)
        return 'Done\n'

    def _start(self) -> str:
        if self.started:
            return 'Ignored: Sensor is already started\nDone\n'
        missing = [name for name in _NEEDED if name not in self._set]
        if missing:
            return f'Error: {missing[0]} is missing, issue the full configuration\nError -1\n'
        self.started = True
        return 'Debug: Init Calibration Status = 0x1ffe\nDone\n'

    def _stop(self) -> str:
        was_started, self.started = self.started, False
        return 'Done\n' if was_started else 'Ignored: Sensor is already stopped\nDone\n'

    def _version(self) -> str:
        version = '.'.join(f'{number:02d}' for number in self._sdk)
        return (
            f'Platform                : {self._platform}\n'
            f'mmWave SDK Version      : {version}\n'
            f'Device Info             : simulated\n'
        )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
