"""Answers each request with the number of lines in FOLDER/access.log: `lines.py PORT FOLDER`."""

import shutil
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

FOLDER = Path(sys.argv[2])


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        log = FOLDER / "access.log"
        lines = log.read_bytes().count(b"\n") if log.exists() else 0
        body = b'{"lines":%d}' % lines
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def stop(*_):
    shutil.rmtree(FOLDER, ignore_errors=True)
    sys.exit(0)


FOLDER.mkdir(parents=True, exist_ok=True)
signal.signal(signal.SIGTERM, stop)
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
