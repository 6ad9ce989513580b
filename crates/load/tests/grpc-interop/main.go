// A server for the interoperability tests of gRPC, with reflection. The answers are those of grpc-go's own
// test server. That server ignores the fields about compression and users, so they are handled here.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

type server struct {
	testpb.TestServiceServer
}

// UnaryCall compresses its answer, compares the compression of the request, and names the user, if the
// request contains the field for it.
func (s server) UnaryCall(ctx context.Context, in *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	if err := expectCompressed(ctx, in.GetExpectCompressed()); err != nil {
		return nil, err
	}
	if err := compress(ctx, in.GetResponseCompressed()); err != nil {
		return nil, err
	}
	answer, err := s.TestServiceServer.UnaryCall(ctx, in)
	if err == nil && in.GetFillUsername() {
		answer.Username, err = user(ctx)
	}
	return answer, err
}

// StreamingOutputCall compresses all its answers if the first parameters contain the field for it.
func (s server) StreamingOutputCall(in *testpb.StreamingOutputCallRequest, stream testpb.TestService_StreamingOutputCallServer) error {
	if parameters := in.GetResponseParameters(); len(parameters) > 0 {
		if err := compress(stream.Context(), parameters[0].GetCompressed()); err != nil {
			return err
		}
	}
	return s.TestServiceServer.StreamingOutputCall(in, stream)
}

func compress(ctx context.Context, wanted *testpb.BoolValue) error {
	switch {
	case wanted == nil:
		return nil
	case wanted.GetValue():
		return grpc.SetSendCompressor(ctx, "gzip")
	default:
		return grpc.SetSendCompressor(ctx, "identity")
	}
}

func expectCompressed(ctx context.Context, wanted *testpb.BoolValue) error {
	received, _ := ctx.Value(key{}).(*received)
	if wanted == nil || received != nil && received.isCompressed == wanted.GetValue() {
		return nil
	}
	return status.Error(codes.InvalidArgument, "the request has another compression")
}

// user returns the user of the token in the metadata.
func user(ctx context.Context) (string, error) {
	incoming, _ := metadata.FromIncomingContext(ctx)
	for _, value := range incoming.Get("authorization") {
		if name, ok := strings.CutPrefix(value, "Bearer token-of-"); ok {
			return name, nil
		}
	}
	return "", status.Error(codes.Unauthenticated, "expected a token in `authorization`")
}

type key struct{}

// received describes the latest message of a call.
type received struct {
	isCompressed bool
}

// messages notes the compression of the messages of each call.
type messages struct{}

func (messages) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, key{}, &received{})
}

func (messages) HandleRPC(ctx context.Context, event stats.RPCStats) {
	payload, isPayload := event.(*stats.InPayload)
	if received, ok := ctx.Value(key{}).(*received); ok && isPayload {
		received.isCompressed = payload.CompressedLength != payload.Length
	}
}

func (messages) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

func (messages) HandleConn(context.Context, stats.ConnStats) {}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	service := grpc.NewServer(grpc.StatsHandler(messages{}))
	testpb.RegisterTestServiceServer(service, server{interop.NewTestServer()})
	reflection.Register(service)
	fmt.Printf("listening on %s\n", listener.Addr())
	log.Fatal(service.Serve(listener))
}
