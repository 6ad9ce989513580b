package main

import (
	"context"
	"errors"
	"io"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	processor "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
)

// authorizer answers the check of Envoy's ext_authz over gRPC.
type authorizer struct {
	auth.UnimplementedAuthorizationServer
}

func (authorizer) Check(_ context.Context, check *auth.CheckRequest) (*auth.CheckResponse, error) {
	code := codes.OK
	if check.GetAttributes().GetRequest().GetHttp().GetHeaders()[refused] != "" {
		code = codes.PermissionDenied
	}
	return &auth.CheckResponse{Status: &status.Status{Code: int32(code)}}, nil
}

// headerProcessor sees the headers of each request and answer, and adds one header to the answer.
type headerProcessor struct {
	processor.UnimplementedExternalProcessorServer
}

func (headerProcessor) Process(stream processor.ExternalProcessor_ProcessServer) error {
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		reply := &processor.ProcessingResponse{}
		switch message.Request.(type) {
		case *processor.ProcessingRequest_RequestHeaders:
			reply.Response = &processor.ProcessingResponse_RequestHeaders{RequestHeaders: &processor.HeadersResponse{}}
		case *processor.ProcessingRequest_ResponseHeaders:
			reply.Response = &processor.ProcessingResponse_ResponseHeaders{ResponseHeaders: &processor.HeadersResponse{
				Response: &processor.CommonResponse{HeaderMutation: &processor.HeaderMutation{
					SetHeaders: []*core.HeaderValueOption{{
						Header: &core.HeaderValue{Key: "x-processed", RawValue: []byte("yes")},
					}},
				}},
			}}
		default:
			return errors.New("expected headers, found another part of a message")
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
}
