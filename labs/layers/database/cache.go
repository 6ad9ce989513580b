package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// cache looks an item up in Redis, before the store.
type cache struct {
	client *redis.Client
	store  *store
	// missed makes keys that are never in the cache.
	missed bool
	calls  atomic.Int64
}

func newCache(url, mode string, store *store) (*cache, error) {
	if mode != "hit" && mode != "miss" {
		return nil, fmt.Errorf("expected none, hit or miss, found `%s`", mode)
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return &cache{client: redis.NewClient(options), store: store, missed: mode == "miss"}, nil
}

func (cache *cache) item(ctx context.Context, id int) ([]byte, error) {
	key, kept := fmt.Sprintf("item:%d", id), time.Hour
	if cache.missed {
		key, kept = fmt.Sprintf("%s:%d", key, cache.calls.Add(1)), time.Second
	}
	found, err := cache.client.Get(ctx, key).Bytes()
	if err == nil {
		counts.hits.Add(1)
		return found, nil
	}
	if !errors.Is(err, redis.Nil) {
		return nil, err
	}
	counts.misses.Add(1)
	item, err := cache.store.item(ctx, id)
	if err != nil {
		return nil, err
	}
	return item, cache.client.Set(ctx, key, item, kept).Err()
}
