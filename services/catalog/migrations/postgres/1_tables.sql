CREATE TABLE product (
    id         uuid        PRIMARY KEY,
    -- Byte order, so that both databases sort alike.
    name       text        COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    price      integer     NOT NULL CHECK (price >= 0),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX product_name ON product (name, id);

CREATE TABLE line_item (
    id         uuid        PRIMARY KEY,
    units      integer     NOT NULL CHECK (units > 0),
    product_id uuid        NOT NULL REFERENCES product (id),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX line_item_product ON line_item (product_id, id);
