"""Reading a request, and what is said when something is not there."""

import json
from typing import NamedTuple

ITEMS_MAX = 10_000


class Refusal(Exception):
    """Why a request is not answered as asked."""


class NoJson(Refusal):
    def __init__(self, detail: object) -> None:
        super().__init__(f"Failed to parse request body: {detail}")


class Missing(Refusal):
    def __init__(self, place: str) -> None:
        super().__init__(f"Missing field from request: {place}")


class Unfit(Refusal):
    def __init__(self, place: str, expected: str, found: str) -> None:
        super().__init__(f"Wrong type in request: expected {place} to be {expected}, found {found}")


class Node(NamedTuple):
    """A value of the body and where it stands."""

    value: object
    place: str = ""

    def get(self, key: str) -> "Node | None":
        """A member of an object, None when it is absent."""
        self.object()
        return Node(self.value[key], self.at(key)) if key in self.value else None

    def need(self, *keys: str) -> "Node":
        """A member that must be there, or a member of a member."""
        node = self
        for key in keys:
            found = node.get(key)
            if found is None:
                raise Missing(node.at(key))
            node = found
        return node

    def items(self) -> list["Node"]:
        self.list()
        if len(self.value) > ITEMS_MAX:
            raise Unfit(self.place, "a list of at most 10000 items", "more")
        return [Node(item, f"{self.place}[{index}]") for index, item in enumerate(self.value)]

    def entries(self) -> dict:
        """An object whose members are taken apart."""
        self.object()
        if len(self.value) > ITEMS_MAX:
            raise Unfit(self.place, "an object of at most 10000 members", "more")
        return self.value

    def text(self) -> str:
        return self.must_be(str, "a text")

    def object(self) -> dict:
        return self.must_be(dict, "an object")

    def list(self) -> list:
        return self.must_be(list, "a list")

    def must_be(self, kind: type, expected: str):
        if not isinstance(self.value, kind):
            raise Unfit(self.place or "the body", expected, kind_of(self.value))
        return self.value

    def at(self, key: str) -> str:
        if not self.place:
            return key
        return f'{self.place}["{key}"]' if "." in key or "/" in key else f"{self.place}.{key}"


def full(node: Node | None) -> Node | None:
    """The node, unless it is absent or empty."""
    return node if node is not None and node.value else None


def given(node: Node | None) -> Node | None:
    """The node, unless it is absent or null."""
    return node if node is not None and node.value is not None else None


def kind_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "a number"


def read_body(body: bytes) -> Node:
    try:
        text = body.decode()
        value = json.loads(text, parse_constant=refuse_constant)
        if "\\u" in text:
            # Half a letter cannot be written again.
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise NoJson(error) from error
    return Node(value)


def refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
