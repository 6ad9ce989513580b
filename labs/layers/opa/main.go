// A service that asks if a request is allowed: `opa-service code|embedded|server ADDRESS POLICY URL`.
//
// GET /seen answers with the number of decisions by each way.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/rego"
)

type input struct {
	User   string   `json:"user"`
	Method string   `json:"method"`
	Path   []string `json:"path"`
}

type decision func(context.Context, input) (bool, error)

func main() {
	if len(os.Args) != 5 {
		fail("expected `opa-service code|embedded|server ADDRESS POLICY URL`, found %d arguments", len(os.Args)-1)
	}
	mode := os.Args[1]
	var decide decision
	switch mode {
	case "code":
		decide = byCode
	case "embedded":
		decide = embedded(os.Args[3])
	case "server":
		decide = server(os.Args[4])
	default:
		fail("expected code, embedded or server, found `%s`", mode)
	}
	var decisions atomic.Int64
	http.HandleFunc("GET /seen", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(answer, `{%q:%d}`, mode, decisions.Load())
	})
	http.HandleFunc("GET /items/{id}", func(answer http.ResponseWriter, request *http.Request) {
		decisions.Add(1)
		asked := input{
			User:   request.Header.Get("X-User"),
			Method: request.Method,
			Path:   strings.Split(strings.Trim(request.URL.Path, "/"), "/"),
		}
		allowed, err := decide(request.Context(), asked)
		switch {
		case err != nil:
			http.Error(answer, err.Error(), http.StatusBadGateway)
		case !allowed:
			http.Error(answer, "refused", http.StatusForbidden)
		default:
			fmt.Fprintf(answer, `{"id":%q}`, request.PathValue("id"))
		}
	})
	fail("%v", http.ListenAndServe(os.Args[2], nil))
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "opa-service: "+format+"\n", values...)
	os.Exit(1)
}

type permit struct{ method, prefix string }

var roles = map[string][]string{"ann": {"reader", "writer"}, "bob": {"guest"}}

var permits = map[string][]permit{
	"reader": {{"GET", "items"}},
	"writer": {{"POST", "items"}, {"DELETE", "items"}},
	"guest":  {{"GET", "public"}},
}

// byCode makes the decision of the policy without it.
func byCode(_ context.Context, asked input) (bool, error) {
	for _, role := range roles[asked.User] {
		if slices.Contains(permits[role], permit{asked.Method, asked.Path[0]}) {
			return true, nil
		}
	}
	return false, nil
}

// embedded compiles the policy once and evaluates it within this process.
func embedded(path string) decision {
	query, err := rego.New(
		rego.Query("data.lab.allow"),
		rego.Load([]string{path}, nil),
	).PrepareForEval(context.Background())
	if err != nil {
		fail("%s: %v", path, err)
	}
	return func(ctx context.Context, asked input) (bool, error) {
		found, err := query.Eval(ctx, rego.EvalInput(asked))
		return err == nil && found.Allowed(), err
	}
}

// server asks an Open Policy Agent over HTTP, over connections that stay open.
func server(url string) decision {
	return func(ctx context.Context, asked input) (bool, error) {
		body, err := json.Marshal(map[string]input{"input": asked})
		if err != nil {
			return false, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/data/lab/allow", bytes.NewReader(body))
		if err != nil {
			return false, err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err
		}
		defer response.Body.Close()
		var found struct{ Result bool }
		if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
			return false, err
		}
		if response.StatusCode != http.StatusOK {
			return false, fmt.Errorf("the policy server answered with %s", response.Status)
		}
		return found.Result, nil
	}
}
