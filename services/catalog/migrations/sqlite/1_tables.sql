-- Times are microseconds since 1970, UTC.
CREATE TABLE product (
    id         BLOB    PRIMARY KEY NOT NULL CHECK (length(id) = 16),
    name       TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    price      INTEGER NOT NULL CHECK (price >= 0),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX product_name ON product (name, id);

CREATE TABLE line_item (
    id         BLOB    PRIMARY KEY NOT NULL CHECK (length(id) = 16),
    units      INTEGER NOT NULL CHECK (units > 0),
    product_id BLOB    NOT NULL REFERENCES product (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX line_item_product ON line_item (product_id, id);
