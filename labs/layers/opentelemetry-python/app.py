"""A list of 50 items on FastAPI."""

from fastapi import FastAPI
from opentelemetry import trace

ITEMS = [
    {"id": number, "name": f"item {number}", "price": number * 7 % 100, "in_stock": number % 3 == 0}
    for number in range(50)
]
app = FastAPI()


@app.get("/")
async def items():
    return ITEMS


@app.get("/traced")
async def traced():
    # A request without a sampled trace has a span, too, which records nothing.
    return {"traced": trace.get_current_span().get_span_context().is_valid}
