"""A JSON service on Python's own http.server, which keeps connections: `server.py PORT WRITES`.

WRITES is 2, as http.server does it: the headers and the body are a packet each. Or 1: both are one.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = json.dumps([{"id": number, "name": f"item {number}"} for number in range(20)]).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Buffered writes leave together when the answer is complete. Python's own value is 0.
    wbufsize = -1 if sys.argv[2] == "1" else 0

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
