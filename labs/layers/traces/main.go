// Counts the spans that a service exports: `traces ADDRESS`.
//
// It accepts OTLP over HTTP in protobuf, and returns the count at /seen.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "traces: expected `traces ADDRESS`, found %d arguments\n", len(os.Args)-1)
		os.Exit(1)
	}
	if err := http.ListenAndServe(os.Args[1], &sink{}); err != nil {
		fmt.Fprintln(os.Stderr, "traces:", err)
		os.Exit(1)
	}
}

type sink struct{ spans atomic.Int64 }

func (sink *sink) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/seen" {
		fmt.Fprintf(answer, `{"spans":%d}`, sink.spans.Load())
		return
	}
	body, err := io.ReadAll(request.Body)
	if err == nil {
		var spans int64
		spans, err = count(body, spanPath)
		sink.spans.Add(spans)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "traces:", err)
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	// An empty body is an empty message, which says that all spans were accepted.
	answer.Header().Set("Content-Type", "application/x-protobuf")
}

// spanPath has the numbers of the fields from an export to a span: resource_spans, scope_spans, spans.
var spanPath = []uint64{1, 2, 2}

var errBroken = errors.New("expected an export of spans in protobuf, found other bytes")

// count returns the number of messages at a path of fields. It skips all other fields.
func count(message []byte, path []uint64) (int64, error) {
	if len(path) == 0 {
		return 1, nil
	}
	var found int64
	for len(message) > 0 {
		tag, length := binary.Uvarint(message)
		if length <= 0 {
			return 0, errBroken
		}
		message = message[length:]
		var size uint64
		switch tag & 7 {
		case 0:
			_, length := binary.Uvarint(message)
			if length <= 0 {
				return 0, errBroken
			}
			size = uint64(length)
		case 1:
			size = 8
		case 2:
			value, length := binary.Uvarint(message)
			if length <= 0 {
				return 0, errBroken
			}
			message = message[length:]
			size = value
		case 5:
			size = 4
		default:
			return 0, errBroken
		}
		if size > uint64(len(message)) {
			return 0, errBroken
		}
		if tag&7 == 2 && tag>>3 == path[0] {
			below, err := count(message[:size], path[1:])
			if err != nil {
				return 0, err
			}
			found += below
		}
		message = message[size:]
	}
	return found, nil
}
