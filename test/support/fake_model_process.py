"""A stand-in for the process of a model server, as a program: how it behaves, and its settings."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

ANSWER = json.dumps({'answer': 'A man in red.', 'tracks': [7, 99]})
COMMAND = (sys.executable, '-I', '-S', __file__)


def say(**words: object) -> None:
    print(json.dumps(words), flush=True)


def serve(behaviour: str, path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        say(ready=True)
        while True:
            connection, _ = listener.accept()
            request = b''
            while b'\r\n\r\n{' not in request or not request.endswith(b'}'):
                request += connection.recv(65536)
            Path(path).with_name('request').write_bytes(request)
            if behaviour == 'is killed when asked':
                os.kill(os.getpid(), signal.SIGKILL)
            if behaviour == 'hangs when asked':
                signal.pause()
            event = {'choices': [{'delta': {'content': ANSWER}}]}
            head = b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n'
            body = f'data: {json.dumps(event)}\n\ndata: [DONE]\n\n'.encode()
            connection.sendall(head + body)
            connection.close()


def main() -> None:
    behaviour, settings = sys.argv[1], json.loads(sys.argv[2])
    if behaviour == 'never loads':
        signal.pause()
    elif behaviour == 'ends':
        return
    elif behaviour == 'is killed':
        os.kill(os.getpid(), signal.SIGKILL)
    elif behaviour == 'breaks down':
        os.kill(os.getpid(), signal.SIGABRT)
    elif behaviour == 'has a problem':
        say(problem='no such luck')
        signal.pause()
    elif behaviour == 'babbles':
        while True:
            print('{"babble": [', end='')
    elif behaviour == 'has children':
        subprocess.Popen([sys.executable, '-I', '-S', '-c', 'import signal; signal.pause()'])
        serve(behaviour, settings['socket'])
    else:
        print('[1]\nnonsense', flush=True)
        serve(behaviour, settings['socket'])


if __name__ == '__main__':
    main()
