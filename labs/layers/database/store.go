package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// counts are the counts for the proofs.
var counts struct{ queries, connections, hits, misses atomic.Int64 }

// table makes the items. Several services with one database may run it at the same time.
const table = `
CREATE TABLE IF NOT EXISTS items (id int PRIMARY KEY, name text NOT NULL, price int NOT NULL);
INSERT INTO items SELECT id, 'item ' || id, id * 7 % 100 FROM generate_series(1, 1000) AS id ON CONFLICT DO NOTHING`

const query = "SELECT id, name, price FROM items WHERE id = $1"

type item struct {
	ID    int    `json:"id"`
	Name  string `json:"name"`
	Price int    `json:"price"`
}

// store reads items, over a pool of connections or over a new connection for each item.
type store struct {
	config *pgx.ConnConfig
	// pool is absent if each request has a connection of its own.
	pool *pgxpool.Pool
}

func openStore(ctx context.Context, url, connections, statements string) (*store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	switch statements {
	case "prepared":
	case "plain":
		// PgBouncer gives each transaction another connection, which does not know earlier statements.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	default:
		return nil, fmt.Errorf("expected prepared or plain, found `%s`", statements)
	}
	if err := prepare(ctx, config.ConnConfig); err != nil {
		return nil, err
	}
	store := &store{config: config.ConnConfig}
	switch connections {
	case "each":
	case "pool":
		config.AfterConnect = func(context.Context, *pgx.Conn) error {
			counts.connections.Add(1)
			return nil
		}
		store.pool, err = pgxpool.NewWithConfig(ctx, config)
	default:
		return nil, fmt.Errorf("expected pool or each, found `%s`", connections)
	}
	return store, err
}

// connectToNew connects to a database that may have just started. It refuses connections for a moment.
func connectToNew(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	deadline := time.Now().Add(20 * time.Second)
	for {
		connection, err := pgx.ConnectConfig(ctx, config)
		var refused *pgconn.PgError
		isStarting := errors.As(err, &refused) && refused.Code == "57P03"
		if !isStarting || time.Now().After(deadline) {
			return connection, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func prepare(ctx context.Context, config *pgx.ConnConfig) error {
	connection, err := connectToNew(ctx, config)
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	// The simple protocol takes several statements at once.
	_, err = connection.PgConn().Exec(ctx, table).ReadAll()
	return err
}

func (store *store) item(ctx context.Context, id int) ([]byte, error) {
	counts.queries.Add(1)
	var found item
	scan := func(row pgx.Row) error { return row.Scan(&found.ID, &found.Name, &found.Price) }
	if store.pool != nil {
		if err := scan(store.pool.QueryRow(ctx, query, id)); err != nil {
			return nil, err
		}
		return json.Marshal(found)
	}
	counts.connections.Add(1)
	connection, err := pgx.ConnectConfig(ctx, store.config)
	if err != nil {
		return nil, err
	}
	defer connection.Close(ctx)
	if err := scan(connection.QueryRow(ctx, query, id)); err != nil {
		return nil, err
	}
	return json.Marshal(found)
}
