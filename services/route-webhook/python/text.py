"""The two styles of JSON."""

import json


def compact(value: object) -> str:
    """Answers: no spaces, letters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def spaced(value: object) -> str:
    """JSON that is a text within JSON: spaces, ASCII only."""
    return json.dumps(value)
