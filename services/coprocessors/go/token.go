package main

import (
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// client is who sent a request.
type client struct{ name, version string }

// keys sign and check tokens.
type keys struct {
	secret []byte
	parser *jwt.Parser
}

func newKeys(secret string) *keys {
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithJSONNumber())
	return &keys{[]byte(secret), parser}
}

// client is the one that a header value names, if its token can be believed.
func (k *keys) client(value string) (client, bool) {
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return client{}, false
	}
	claims := jwt.MapClaims{}
	_, err := k.parser.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) {
		return k.secret, nil
	})
	if err != nil {
		return client{}, false
	}
	name := text(claims["client_name"], "coprocessor")
	return client{name, text(claims["client_version"], "loadtest")}, true
}

// create answers a wish for a token.
func (k *keys) create(wish map[string]any) map[string]any {
	or := func(key string, otherwise string) any {
		if value, ok := wish[key]; ok {
			return value
		}
		return otherwise
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"client_name":    or("clientName", "coprocessor"),
		"client_version": or("clientVersion", "loadtest"),
	}).SignedString(k.secret)
	if err != nil {
		panic(err) // HS256 signs any bytes
	}
	return map[string]any{"token": token}
}

func text(claim any, otherwise string) string {
	if claim == nil {
		return otherwise
	}
	return fmt.Sprint(claim)
}
