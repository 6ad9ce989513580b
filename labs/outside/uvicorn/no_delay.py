"""uvicorn with Nagle's algorithm off: `python -m no_delay` takes the flags of `python -m uvicorn`."""

import socket

import uvicorn

bind_socket = uvicorn.Config.bind_socket


def bind_without_delay(config):
    listener = bind_socket(config)
    # Connections that it accepts inherit this.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


if __name__ == "__main__":
    uvicorn.Config.bind_socket = bind_without_delay
    uvicorn.main()
