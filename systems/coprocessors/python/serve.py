"""The HTTP shell: routes, bodies."""

import json
import os

from fastapi import FastAPI, HTTPException, Request, Response

from decide import decide
from token_check import create_token

# Largest message, as in the other languages.
BODY_LIMIT = 16 << 20
SECRET = os.environ.get("JWT_SECRET", "apollo")

app = FastAPI(openapi_url=None)


async def read_message(request: Request) -> dict:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise HTTPException(413, "the message is too large")
    try:
        message = json.loads(body, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, str(error)) from error
    if not isinstance(message, dict):
        raise HTTPException(400, "expected an object")
    return message


def refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def reply(message: dict) -> Response:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode(errors="surrogatepass"), media_type="application/json")


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
