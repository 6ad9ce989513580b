"""The webhook in Python: entry, port and stop."""

import os
import signal
import socket

import uvicorn

OPTIONS = {
    "loop": "uvloop",
    "http": "httptools",
    "access_log": False,
    "log_level": "warning",
    "timeout_graceful_shutdown": 9,
}


def main() -> None:
    address = (os.environ.get("HOST") or "0.0.0.0", int(os.environ.get("PORT") or 7080))
    listener = socket.create_server(address, backlog=2048)
    host, port = listener.getsockname()
    print(f"listening on http://{host}:{port}", flush=True)
    # uvicorn finishes what is under way and then sends itself the signal again;
    # by then this is what the signal means.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    uvicorn.Server(uvicorn.Config("serve:app", **OPTIONS)).run(sockets=[listener])


if __name__ == "__main__":
    main()
