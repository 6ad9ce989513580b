"""Twenty items of PostgreSQL with their makers, read as the variable ACCESS names: sql, core, orm or related.

It has no framework and one connection, so that the access to the database is the larger part.
"""

import json
import os

import psycopg
from sqlalchemy import ForeignKey, create_engine, event, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, joinedload, mapped_column, relationship, selectinload
from sqlalchemy.pool import StaticPool


class Base(DeclarativeBase):
    pass


class Maker(Base):
    __tablename__ = "makers"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Item(Base):
    __tablename__ = "items"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    price: Mapped[int]
    maker_id: Mapped[int] = mapped_column(ForeignKey("makers.id"))
    maker: Mapped[Maker] = relationship()


TABLES = """
CREATE TABLE makers (id int PRIMARY KEY, name text NOT NULL);
INSERT INTO makers SELECT id, 'maker ' || id FROM generate_series(1, 5) AS id;
CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, price int NOT NULL, maker_id int NOT NULL REFERENCES makers);
INSERT INTO items SELECT id, 'item ' || id, id * 7 % 100, id % 5 + 1 FROM generate_series(1, 1000) AS id
"""
QUERY = """
SELECT items.id, items.name, items.price, makers.name FROM items JOIN makers ON makers.id = items.maker_id
WHERE items.id <= 20 ORDER BY items.id
"""

address = os.environ["DATABASE"]
access = os.environ["ACCESS"]
seen = {"queries": 0, "objects": 0}
with psycopg.connect(f"postgresql://postgres@{address}/postgres", autocommit=True) as first:
    first.execute(TABLES)


def row(number, name, price, maker):
    return {"id": number, "name": name, "price": price, "maker": maker}


def by_sql():
    connection = psycopg.connect(f"postgresql://postgres@{address}/postgres", autocommit=True)

    def read():
        seen["queries"] += 1
        return [row(*found) for found in connection.execute(QUERY)]

    return read


def engine():
    made = create_engine(
        f"postgresql+psycopg://postgres@{address}/postgres", poolclass=StaticPool, isolation_level="AUTOCOMMIT"
    )
    # The dialect asks for its settings when it connects. Only the queries of requests count.
    made.connect().close()

    @event.listens_for(made, "before_cursor_execute")
    def count(*_):
        seen["queries"] += 1

    return made


def by_core():
    items, makers = Item.__table__, Maker.__table__
    query = (
        select(items.c.id, items.c.name, items.c.price, makers.c.name)
        .join_from(items, makers)
        .where(items.c.id <= 20)
        .order_by(items.c.id)
    )
    made = engine()

    def read():
        with made.connect() as connection:
            return [row(*found) for found in connection.execute(query)]

    return read


def by_orm(option):
    query = select(Item).where(Item.id <= 20).order_by(Item.id).options(option(Item.maker))
    made = engine()

    @event.listens_for(Item, "load")
    def count(*_):
        seen["objects"] += 1

    def read():
        with Session(made) as session:
            return [row(it.id, it.name, it.price, it.maker.name) for it in session.scalars(query)]

    return read


WAYS = {
    "sql": by_sql,
    "core": by_core,
    "orm": lambda: by_orm(joinedload),
    "related": lambda: by_orm(selectinload),
}
if access not in WAYS:
    raise SystemExit(f"service: expected ACCESS to be one of {', '.join(WAYS)}, found `{access}`")
read = WAYS[access]()


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    answer = seen if scope["path"] == "/seen" else read()
    body = json.dumps(answer).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
