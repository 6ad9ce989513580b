// A service that answers with a list: `service none|jwt ADDRESS KEY`.
//
// With `jwt`, it requires a token that the key in the PEM file has signed.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

func main() {
	if len(os.Args) != 4 {
		fail("expected `service none|jwt ADDRESS KEY`, found %d arguments", len(os.Args)-1)
	}
	handler := http.Handler(http.HandlerFunc(list))
	switch mode := os.Args[1]; mode {
	case "none":
	case "jwt":
		handler = checked(handler, os.Args[3])
	default:
		fail("expected none or jwt, found `%s`", mode)
	}
	fail("%v", http.ListenAndServe(os.Args[2], handler))
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "service: "+format+"\n", values...)
	os.Exit(1)
}

func list(answer http.ResponseWriter, _ *http.Request) {
	answer.Header().Set("Content-Type", "application/json")
	fmt.Fprint(answer, `{"items":[{"id":1,"name":"one"},{"id":2,"name":"two"}]}`)
}

// checked lets only requests with a right token through.
func checked(next http.Handler, path string) http.Handler {
	text, err := os.ReadFile(path)
	if err != nil {
		fail("%v", err)
	}
	key, err := jwt.ParseRSAPublicKeyFromPEM(text)
	if err != nil {
		fail("%s: %v", path, err)
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{"RS256"}),
		jwt.WithIssuer("weighbridge"),
		jwt.WithExpirationRequired(),
	)
	return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		token, found := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
		if found {
			_, err := parser.Parse(token, func(*jwt.Token) (any, error) { return key, nil })
			found = err == nil
		}
		if !found {
			answer.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(answer, request)
	})
}
