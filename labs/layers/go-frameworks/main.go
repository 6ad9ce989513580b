// The same service with three routers: `frameworks net-http|chi|gin|gin-default ADDRESS`.
//
// GET /items/{id} answers with the item, and GET /router with the type of the router.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
)

type item struct {
	ID   string   `json:"id"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

func main() {
	if len(os.Args) != 3 {
		fail("expected `frameworks net-http|chi|gin|gin-default ADDRESS`, found %d arguments", len(os.Args)-1)
	}
	router := routerOf(os.Args[1])
	fail("%v", http.ListenAndServe(os.Args[2], router))
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "frameworks: "+format+"\n", values...)
	os.Exit(1)
}

func routerOf(name string) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	switch name {
	case "net-http":
		router := http.NewServeMux()
		router.HandleFunc("GET /items/{id}", func(answer http.ResponseWriter, request *http.Request) {
			write(answer, request.PathValue("id"))
		})
		router.HandleFunc("GET /router", typeOf(router))
		return router
	case "chi":
		router := chi.NewRouter()
		router.Get("/items/{id}", func(answer http.ResponseWriter, request *http.Request) {
			write(answer, chi.URLParam(request, "id"))
		})
		router.Get("/router", typeOf(router))
		return router
	case "gin":
		return ginWith(gin.New())
	case "gin-default":
		// gin.Default adds a log and a handler of panics. The log goes nowhere.
		gin.DefaultWriter = io.Discard
		return ginWith(gin.Default())
	}
	fail("expected net-http, chi, gin or gin-default, found `%s`", name)
	return nil
}

func ginWith(router *gin.Engine) http.Handler {
	router.GET("/items/:id", func(call *gin.Context) {
		// The bytes are the same as those of the other routers.
		write(call.Writer, call.Param("id"))
	})
	router.GET("/router", gin.WrapF(typeOf(router)))
	return router
}

func write(answer http.ResponseWriter, id string) {
	answer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(answer).Encode(item{ID: id, Name: "item " + id, Tags: []string{"new", "red"}})
}

func typeOf(router http.Handler) http.HandlerFunc {
	return func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(answer, `{"router":"%T"}`, router)
	}
}
