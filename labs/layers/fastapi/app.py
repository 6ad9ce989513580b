"""A list of 50 items on FastAPI. The variable LAYERS names its middlewares: cors gzip hosts own."""

import os
from pathlib import Path

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from pydantic import BaseModel
from starlette.middleware.base import BaseHTTPMiddleware


class Item(BaseModel):
    id: int
    name: str
    price: float
    in_stock: bool


class Own(BaseHTTPMiddleware):
    """A middleware as the documentation of FastAPI shows it: it adds a header."""

    async def dispatch(self, request, call_next):
        answer = await call_next(request)
        answer.headers["X-Own"] = "yes"
        return answer


ITEMS = [
    {"id": number, "name": f"item {number}", "price": number * 7 % 100, "in_stock": number % 3 == 0}
    for number in range(50)
]
LAYERS = {
    "cors": lambda app: app.add_middleware(CORSMiddleware, allow_origins=["https://example.com"]),
    "gzip": lambda app: app.add_middleware(GZipMiddleware),
    "hosts": lambda app: app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1"]),
    "own": lambda app: app.add_middleware(Own),
}

app = FastAPI()
for layer in os.environ.get("LAYERS", "").split():
    LAYERS[layer](app)


@app.get("/", response_model=list[Item])
async def items():
    return ITEMS


def is_worker(process):
    """True if uvicorn has started this process as a worker."""
    return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()


@app.get("/workers")
def workers():
    parent = os.getppid()
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return {"workers": sum(map(is_worker, children))}
