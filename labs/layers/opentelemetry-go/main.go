// A service that answers with a list: `service none|SHARE ADDRESS`.
//
// With a share, OpenTelemetry traces this share of the requests and exports the spans over HTTP.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func main() {
	if len(os.Args) != 3 {
		fail("expected `service none|SHARE ADDRESS`, found %d arguments", len(os.Args)-1)
	}
	handler := http.Handler(http.HandlerFunc(serve))
	if mode := os.Args[1]; mode != "none" {
		share, err := strconv.ParseFloat(mode, 64)
		if err != nil || share < 0 || share > 1 {
			fail("expected none or a share from 0 to 1, found `%s`", mode)
		}
		handler = traced(handler, share)
	}
	fail("%v", http.ListenAndServe(os.Args[2], handler))
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "service: "+format+"\n", values...)
	os.Exit(1)
}

func serve(answer http.ResponseWriter, request *http.Request) {
	answer.Header().Set("Content-Type", "application/json")
	if request.URL.Path == "/traced" {
		// A request without a sampled trace has a span, too, which records nothing.
		valid := trace.SpanContextFromContext(request.Context()).IsValid()
		fmt.Fprintf(answer, `{"traced":%t}`, valid)
		return
	}
	fmt.Fprint(answer, `{"items":[{"id":1,"name":"one"},{"id":2,"name":"two"}]}`)
}

// traced adds the instrumentation. Variables of the environment name the receiver of the spans.
func traced(next http.Handler, share float64) http.Handler {
	exporter, err := otlptracehttp.New(context.Background())
	if err != nil {
		fail("%v", err)
	}
	otel.SetTracerProvider(sdk.NewTracerProvider(
		sdk.WithBatcher(exporter),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(share))),
	))
	return otelhttp.NewHandler(next, "service")
}
