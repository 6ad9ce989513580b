package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
)

const (
	// Largest message, as in the other languages.
	bodyLimit = 16 << 20
	// How long requests under way may take after a stop.
	grace = 9 * time.Second
)

// serve answers until told to stop, and then finishes what is under way.
func serve(told context.Context, listener net.Listener, keys *keys) error {
	server := &http.Server{Handler: routes(keys), ReadHeaderTimeout: 30 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-told.Done()
		within, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		stopped <- server.Shutdown(within)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

func routes(keys *keys) http.Handler {
	router := chi.NewRouter()
	for path, endpoint := range map[string]endpoint{
		"/static-subgraph":  staticSubgraph,
		"/guid-response":    guidResponse,
		"/client-awareness": clientAwareness,
	} {
		router.Post(path, answer(func(message map[string]any) map[string]any {
			return decide(endpoint, message, keys)
		}))
	}
	router.Post("/create-jwt", answer(keys.create))
	router.Get("/health", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"status": "UP"})
	})
	return router
}

func answer(decision func(map[string]any) map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			http.Error(w, "the message is too large", http.StatusRequestEntityTooLarge)
			return
		}
		message, err := readMessage(body, err)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reply(w, decision(message))
	}
}

func readMessage(body []byte, err error) (map[string]any, error) {
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(body) {
		return nil, errors.New("expected UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	// Numbers come back digit by digit as they came.
	decoder.UseNumber()
	var message map[string]any
	if err := decoder.Decode(&message); err != nil {
		return nil, err
	}
	if message == nil {
		return nil, errors.New("expected an object, found null")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("expected one message, found more behind it")
	}
	return message, nil
}

func reply(w http.ResponseWriter, message map[string]any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(message); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// The client may be gone, and then the error cannot be sent.
	_, _ = w.Write(text.Bytes())
}
