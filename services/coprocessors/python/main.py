"""The coprocessor in Python: entry, port and stop. ../CONTRACT.md says what it does."""

import os
import signal
import socket
import sys

import uvicorn

OPTIONS = {
    "loop": "uvloop",
    "http": "httptools",
    "access_log": False,
    "log_level": "warning",
    "server_header": False,
    "timeout_graceful_shutdown": 9,
}


def main() -> None:
    workers = int(os.environ.get("WORKERS") or len(os.sched_getaffinity(0)))
    listener = listen()
    if workers > 1:
        lead(workers, listener)
    else:
        serve(listener)


def listen() -> socket.socket:
    path = os.environ.get("SOCKET")
    if path:
        # What a killed predecessor left behind would be in the way.
        if os.path.lexists(path):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
    else:
        listener = socket.create_server(("0.0.0.0", int(os.environ.get("PORT") or 3000)))
    listener.listen(2048)
    return listener


def lead(workers: int, listener: socket.socket) -> None:
    """A process serves on one CPU; the others are served by processes of their own.

    uvicorn's own leader keeps the port open while its workers finish, so that
    new connections would wait without being accepted.
    """
    # Told to stop between two forks, it is told again when all are there.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    children = []
    for _ in range(workers):
        child = os.fork()
        if child == 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
            serve(listener)
            sys.exit(0)
        children.append(child)
    listener.close()

    def stop(*_: object) -> None:
        for child in children:
            os.kill(child, signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    # A worker that ends by itself ends them all: a service with fewer workers would be measured as if it were whole.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
    failed = False
    while children:
        child, status = os.wait()
        children.remove(child)
        if status != 0:
            failed = True
            stop()
    sys.exit(1 if failed else 0)


def serve(listener: socket.socket) -> None:
    # uvicorn finishes what is under way and then sends itself the signal again;
    # by then this is what the signal means.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    uvicorn.Server(uvicorn.Config("serve:app", **OPTIONS)).run(sockets=[listener])


if __name__ == "__main__":
    main()
