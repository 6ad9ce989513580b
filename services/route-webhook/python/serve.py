"""The HTTP shell: routes, bodies, errors."""

import os
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import seed
from certificate import certificates
from request import NoJson, Refusal, read_body
from sync import sync
from text import compact

IMAGE = os.environ.get("INTEGRATION_IMAGE") or "keip-integration"
IS_SEED = os.environ.get("WEBHOOK_COMPAT") == "seed"


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def answer(decide) -> object:
    """An endpoint that answers what a pure function says of a body."""

    async def endpoint(request: Request) -> Response:
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            return PlainTextResponse("expected a body without Content-Encoding", 415)
        try:
            value = decide(read_body(await request.body()))
        except NoJson as refusal:
            text = "Failed to parse request body" if IS_SEED else str(refusal)
            return PlainTextResponse(text, 400)
        except Refusal as refusal:
            return PlainTextResponse(str(refusal), 400)
        return Response(compact(value).encode(), media_type="application/json")

    return endpoint


async def status(_: Request) -> Response:
    return Response(b'{"status":"UP"}', media_type="application/json")


def decide_sync(body: object) -> dict:
    return seed.sync(body, IMAGE) if IS_SEED else sync(body, IMAGE, now)


app = Starlette(
    routes=[
        Route(prefix + path, endpoint, methods=["POST"])
        for prefix in ("/webhook", "")
        for path, endpoint in (
            ("/sync", answer(decide_sync)),
            ("/addons/certmanager/sync", answer(certificates)),
        )
    ]
    + [Route(path, status, methods=["GET"]) for path in ("/status", "/health")]
)
