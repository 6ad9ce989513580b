"""The pure decision: which message is changed, and how."""

from uuid import uuid4

from token_check import client_of


def decide(endpoint: str, message: dict, secret: str) -> dict:
    """Answers one message, changing it only at the stage that the endpoint is for."""
    match endpoint, message.get("stage"):
        case "/static-subgraph", "SubgraphRequest":
            return add_source(message)
        case "/guid-response", "RouterResponse":
            return add_ids(message)
        case "/client-awareness", "RouterRequest":
            return identify_client(message, secret)
        case _:
            return message


def add_source(message: dict) -> dict:
    set_header(message, "source", ["coprocessor"])
    return message


def add_ids(message: dict) -> dict:
    set_header(message, "GUID", [str(uuid4()) for _ in range(10)])
    return message


def identify_client(message: dict, secret: str) -> dict:
    match message.get("headers"):
        case {"authentication": [value, *_]}:
            client = client_of(value, secret)
        case _:
            client = None
    if client:
        set_header(message, "apollographql-client-name", [client.name])
        set_header(message, "apollographql-client-version", [client.version])
    else:
        message["control"] = {"break": 401}
    return message


def set_header(message: dict, name: str, values: list[str]) -> None:
    """Does nothing when the headers were not sent."""
    if isinstance(message.get("headers"), dict):
        message["headers"][name] = values
