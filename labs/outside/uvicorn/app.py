"""A JSON service for uvicorn, with no framework."""

import json

ANSWER = json.dumps([{"id": number, "name": f"item {number}"} for number in range(20)]).encode()
HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(ANSWER)).encode())]


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": ANSWER})
