"""The token check. (`token` is a module of Python itself.)"""

import json
from typing import NamedTuple

import jwt

# Only `exp` and `nbf` say whether a token holds.
RULES = {"verify_aud": False, "verify_iss": False, "verify_iat": False, "verify_sub": False, "verify_jti": False}


class Client(NamedTuple):
    name: str
    version: str


def client_of(value: object, secret: str) -> Client | None:
    """The client that a header value names, if its token can be believed."""
    if not isinstance(value, str):
        return None
    scheme, _, token = value.partition(" ")
    if scheme.lower() != "bearer":
        return None
    try:
        claims = jwt.decode(token, secret, algorithms=["HS256"], options=RULES)
    except jwt.InvalidTokenError:
        return None
    return Client(
        text(claims.get("client_name"), "coprocessor"),
        text(claims.get("client_version"), "loadtest"),
    )


def create_token(wish: dict, secret: str) -> dict:
    """Answers a wish for a token."""
    claims = {
        "client_name": wish.get("clientName", "coprocessor"),
        "client_version": wish.get("clientVersion", "loadtest"),
    }
    return {"token": jwt.encode(claims, secret, algorithm="HS256")}


def text(claim: object, otherwise: str) -> str:
    if claim is None:
        return otherwise
    return claim if isinstance(claim, str) else json.dumps(claim)
