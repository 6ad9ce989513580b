// The coprocessor in Go: entry, port and stop. ../CONTRACT.md says what it does.
package main

import (
	"cmp"
	"context"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	told, forget := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer forget()
	listener, err := listen()
	if err != nil {
		log.Fatal(err)
	}
	keys := newKeys(cmp.Or(os.Getenv("JWT_SECRET"), "apollo"))
	if err := serve(told, listener, keys); err != nil {
		log.Fatal(err)
	}
}

func listen() (net.Listener, error) {
	if path := os.Getenv("SOCKET"); path != "" {
		// What a killed predecessor left behind would be in the way.
		_ = os.Remove(path)
		return net.Listen("unix", path)
	}
	return net.Listen("tcp", ":"+cmp.Or(os.Getenv("PORT"), "3000"))
}
