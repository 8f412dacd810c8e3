"""The processes of a model of one's own: its keeper, and the server, xllamacpp on a unix socket.

Run as a file, this is the keeper. It must start at once and never fail, so that at the top it
imports the standard library alone, and runs without site packages. It starts the server with the
lowest priority, as the first to go where memory runs out, and waits for the end of its standard
input, which the kernel closes however the asker ends; then it kills the server with its children
and removes the private folder of its socket. Run as a module, this is the server. Both say in
lines of JSON on standard output what becomes of it.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG
_HTTP_THREADS = 2


def keep(folder: str, command: list[str]) -> None:
    """Run a server until it or the asker ends."""
    asker = os.getppid()
    os.setpgrp()
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    libc = ctypes.CDLL(None)

    def become_lowest() -> None:
        os.setpgrp()
        libc.prctl(_PARENT_DEATH, signal.SIGKILL)
        os.nice(19)
        with suppress(OSError), open('/proc/self/oom_score_adj', 'w') as file:  # noqa: PTH123
            file.write('1000')
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    def kill() -> None:
        with suppress(OSError):
            os.killpg(server.pid, signal.SIGKILL)

    def watch() -> None:
        # A fork of the asker may hold the other end open.
        while os.getppid() == asker:
            if select.select([0], [], [], 1.0)[0] and not os.read(0, 4096):
                break
        kill()

    try:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            preexec_fn=become_lowest,  # noqa: PLW1509  # there is no other thread yet
        )
        _say(1, pid=server.pid)
        threading.Thread(target=watch, daemon=True).start()
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
        kill()
        _say(1, ended=server.wait())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def serve(settings: dict[str, object]) -> None:
    """Serve a model until this process is killed."""
    import psutil

    out = os.dup(1)
    # Libraries write what they like to both.
    nothing = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nothing, number)
    psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)
    try:
        server = _served(settings)
    except ImportError as err:
        problem = f'xllamacpp, which runs models, cannot be imported ({str(err)[:200]})'
        remedy = 'pip install xllamacpp, or name the endpoint of a server of your own'
        _say(out, problem=f'{problem}: {remedy}')
    except (RuntimeError, ValueError, MemoryError, OSError):
        name = os.path.basename(str(settings['model']))  # noqa: PTH119
        more = ', and whether the projector belongs to it' if settings['projector'] else ''
        _say(out, problem=f'{name} cannot be loaded; check that the file is whole{more}')
    else:
        _say(out, ready=True)
        while server is not None:
            signal.pause()


def _served(settings: dict[str, object]) -> object:
    # A crash must not wait for a debugger that a library starts.
    os.environ['GGML_NO_BACKTRACE'] = '1'
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings['model']
    if settings['projector']:
        params.mmproj.path = settings['projector']
    # A name that ends in .sock is one.
    params.hostnames = [settings['socket']]
    params.n_ctx = settings['context']
    params.n_parallel = 1
    params.cpuparams.n_threads = settings['threads']
    params.cpuparams_batch.n_threads = settings['threads']
    params.n_threads_http = _HTTP_THREADS
    # What every description begins with is read once; nothing more is worth keeping.
    params.cache_prompt = True
    params.cache_ram_mib = 0
    params.warmup = False
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.verbosity = -1
    return xllamacpp.Server(params)


def _say(out: int, **words: object) -> None:
    with suppress(OSError):
        os.write(out, json.dumps(words).encode() + b'\n')


if __name__ == '__main__':
    if globals().get('__spec__') is None:
        keep(sys.argv[1], sys.argv[2:])
    else:
        serve(json.loads(sys.argv[1]))
