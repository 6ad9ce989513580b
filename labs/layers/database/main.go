// A service that reads an item of PostgreSQL, with or without a cache in Redis.
//
// GET /items/{id} answers with the item, and GET /seen with the counts for the proofs.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "the address of the service")
	postgres := flag.String("postgres", "", "the URL of the database")
	connections := flag.String("connections", "pool", "pool, or each for a connection for each request")
	statements := flag.String("statements", "prepared", "prepared, or plain for statements that are not prepared")
	redis := flag.String("redis", "none", "the URL of the cache")
	cache := flag.String("cache", "none", "none, hit, or miss for a cache that never has the item")
	flag.Parse()

	ctx := context.Background()
	store, err := openStore(ctx, *postgres, *connections, *statements)
	if err != nil {
		fail(err)
	}
	handler := handler{find: store.item}
	if *cache != "none" {
		cached, err := newCache(*redis, *cache, store)
		if err != nil {
			fail(err)
		}
		handler.find = cached.item
	}
	http.HandleFunc("GET /items/{id}", handler.serve)
	http.HandleFunc("GET /seen", seen)
	fail(http.ListenAndServe(*listen, nil))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "service:", err)
	os.Exit(1)
}

type handler struct {
	// find returns the JSON of an item.
	find func(context.Context, int) ([]byte, error)
}

func (handler handler) serve(answer http.ResponseWriter, request *http.Request) {
	id, err := strconv.Atoi(request.PathValue("id"))
	if err != nil {
		http.Error(answer, "expected the number of an item", http.StatusBadRequest)
		return
	}
	item, err := handler.find(request.Context(), id)
	if err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
		return
	}
	answer.Header().Set("Content-Type", "application/json")
	_, _ = answer.Write(item)
}

func seen(answer http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(answer, `{"queries":%d,"connections":%d,"hits":%d,"misses":%d}`,
		counts.queries.Load(), counts.connections.Load(), counts.hits.Load(), counts.misses.Load())
}
