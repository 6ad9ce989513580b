"""The HTTP shell: routes, bodies."""

import json
import math
import os

from fastapi import FastAPI, HTTPException, Request, Response

from decide import decide
from token_check import create_token

# Largest message, as in the other languages.
BODY_LIMIT = 16 << 20
SECRET = os.environ.get("JWT_SECRET", "apollo")

# A redirect is not in the contract: another path is unknown.
app = FastAPI(openapi_url=None, redirect_slashes=False)


async def read_message(request: Request) -> dict:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise HTTPException(413, "the message is too large")
    try:
        # Decoded here, because the library also takes UTF-16 and a byte order mark.
        message = json.loads(body.decode(), parse_constant=refuse_constant, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, str(error)) from error
    if not isinstance(message, dict):
        raise HTTPException(400, "expected an object")
    return message


def refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def finite(text: str) -> float:
    """A number beyond a double would come back as a word that is no JSON."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large")
    return number


def reply(message: dict) -> Response:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    # Half of a surrogate pair has no UTF-8. JSON has an escape for it, which Python writes in the same form.
    return Response(text.encode(errors="backslashreplace"), media_type="application/json")


@app.post("/static-subgraph")
@app.post("/guid-response")
@app.post("/client-awareness")
async def answer(request: Request) -> Response:
    return reply(decide(request.url.path, await read_message(request), SECRET))


@app.post("/create-jwt")
async def create_jwt(request: Request) -> Response:
    return reply(create_token(await read_message(request), SECRET))


@app.get("/health")
async def health() -> Response:
    return reply({"status": "UP"})
