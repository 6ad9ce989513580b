-- What the tables were filled with; no row, nothing yet.
CREATE TABLE catalog_seed (products integer NOT NULL, line_items integer NOT NULL);
