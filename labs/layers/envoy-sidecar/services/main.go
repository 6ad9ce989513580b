// The services beside Envoy: `services ROLE ADDRESS`.
//
// Each role does the least work that the protocol allows, so that the lab measures the protocol.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	processor "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
)

// The header that makes both authorization services refuse a request. A proof sends it.
const refused = "x-refuse"

func main() {
	if len(os.Args) != 3 {
		fail("expected `services authz-http|authz-grpc|processor|traces ADDRESS`, found %d arguments", len(os.Args)-1)
	}
	listener, err := net.Listen("tcp", os.Args[2])
	if err != nil {
		fail("%v", err)
	}
	switch role := os.Args[1]; role {
	case "authz-http":
		err = http.Serve(listener, http.HandlerFunc(authorize))
	case "authz-grpc":
		server := grpc.NewServer()
		auth.RegisterAuthorizationServer(server, authorizer{})
		err = server.Serve(listener)
	case "processor":
		server := grpc.NewServer()
		processor.RegisterExternalProcessorServer(server, headerProcessor{})
		err = server.Serve(listener)
	case "traces":
		err = http.Serve(listener, &traces{})
	default:
		fail("expected authz-http, authz-grpc, processor or traces, found `%s`", role)
	}
	fail("%v", err)
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "services: "+format+"\n", values...)
	os.Exit(1)
}

// authorize answers the check of Envoy's ext_authz over HTTP.
func authorize(answer http.ResponseWriter, request *http.Request) {
	if request.Header.Get(refused) != "" {
		answer.WriteHeader(http.StatusForbidden)
	}
}

// traces counts the spans of Zipkin's JSON, and returns the count at /seen.
type traces struct{ spans atomic.Int64 }

func (sink *traces) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/seen" {
		fmt.Fprintf(answer, `{"spans":%d}`, sink.spans.Load())
		return
	}
	var spans []json.RawMessage
	if err := json.NewDecoder(request.Body).Decode(&spans); err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	sink.spans.Add(int64(len(spans)))
	answer.WriteHeader(http.StatusAccepted)
}
