"""Real-time multimodal perception for drones: camera and mmWave radar, pipelined."""

from pkgutil import extend_path

# In a source checkout the generated messages live beside the installed copy, not here:
# extending the path lets `mmedge_ros.msg` be found while the sources stay in front.
__path__ = extend_path(__path__, __name__)
__version__ = '0.1.0'


class MmedgeError(ValueError):
    """Base of all errors that a user can act on; the message names value, place and remedy."""


def git_revision() -> str:
    """Return the commit of the checkout this package lies in; '' outside of one."""
    import subprocess
    from pathlib import Path

    root = Path(__file__).resolve().parents[1]
    if not (root / '.git').exists():
        return ''
    try:
        described = subprocess.run(
            ['git', '-C', str(root), 'describe', '--always', '--dirty'],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ''
    return described.stdout.strip()
