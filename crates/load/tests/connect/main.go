// A server for calls of Connect, gRPC-Web and gRPC by connect-go, over HTTP/1.1 and HTTP/2 in plain text and over
// HTTP/3 at the same port. It writes the descriptors of its service to the file in its first argument.
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/quic-go/quic-go/http3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/sourcecontextpb"
)

type note = sourcecontextpb.SourceContext

// say answers with the same text, and with the token in the metadata.
func say(ctx context.Context, in *connect.Request[note]) (*connect.Response[note], error) {
	switch in.Msg.GetFileName() {
	case "fail":
		err := connect.NewError(connect.CodeNotFound, errors.New("no such note"))
		detail, wrong := connect.NewErrorDetail(&note{FileName: "why"})
		if wrong != nil {
			return nil, wrong
		}
		err.AddDetail(detail)
		return nil, err
	case "slow":
		<-ctx.Done()
		return nil, ctx.Err()
	case "deaf":
		// The context ends at the deadline, which this method does not obey.
		time.Sleep(200 * time.Millisecond)
		return connect.NewResponse(in.Msg), nil
	case "token":
		return connect.NewResponse(&note{FileName: in.Header().Get("authorization")}), nil
	default:
		return connect.NewResponse(in.Msg), nil
	}
}

// watch answers three times, or fails after the first answer.
func watch(_ context.Context, in *connect.Request[note], stream *connect.ServerStream[note]) error {
	for number := range 3 {
		if number == 1 && in.Msg.GetFileName() == "fail" {
			return connect.NewError(connect.CodeResourceExhausted, errors.New("no more notes"))
		}
		answer := &note{FileName: fmt.Sprintf("%s %d", in.Msg.GetFileName(), number)}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
	return nil
}

// collect answers once with the texts of all messages.
func collect(_ context.Context, stream *connect.ClientStream[note]) (*connect.Response[note], error) {
	var texts []string
	for stream.Receive() {
		texts = append(texts, stream.Msg().GetFileName())
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return connect.NewResponse(&note{FileName: strings.Join(texts, "+")}), nil
}

// chat answers each message with the same message.
func chat(_ context.Context, stream *connect.BidiStream[note, note]) error {
	for {
		in, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(in); err != nil {
			return err
		}
	}
}

// descriptors returns the descriptors of the service.
func descriptors() ([]byte, error) {
	name := ".google.protobuf.SourceContext"
	method := func(name string, takes bool, answers bool, of string) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: &of, OutputType: &of,
			ClientStreaming: &takes, ServerStreaming: &answers,
		}
	}
	context := protodesc.ToFileDescriptorProto(sourcecontextpb.File_google_protobuf_source_context_proto)
	own := &descriptorpb.FileDescriptorProto{
		Name:       proto.String("notes.proto"),
		Package:    proto.String("notes"),
		Syntax:     proto.String("proto3"),
		Dependency: []string{context.GetName()},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: proto.String("Notes"),
			Method: []*descriptorpb.MethodDescriptorProto{
				method("Say", false, false, name),
				method("Watch", false, true, name),
				method("Collect", true, false, name),
				method("Chat", true, true, name),
			},
		}},
	}
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{context, own}}
	return proto.Marshal(set)
}

// certificate returns a certificate that no authority has signed.
func certificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}

// serveHTTP3 serves the handlers at the UDP port of this address.
func serveHTTP3(handlers http.Handler, address net.Addr) {
	own, err := certificate()
	if err != nil {
		log.Fatal(err)
	}
	packets, err := net.ListenPacket("udp", address.String())
	if err != nil {
		log.Fatal(err)
	}
	settings := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{own}})
	server := &http3.Server{Handler: handlers, TLSConfig: settings}
	go func() { log.Fatal(server.Serve(packets)) }()
}

func main() {
	set, err := descriptors()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[1], set, 0o644); err != nil {
		log.Fatal(err)
	}
	handlers := http.NewServeMux()
	handlers.Handle("/notes.Notes/Say", connect.NewUnaryHandler("/notes.Notes/Say", say))
	handlers.Handle("/notes.Notes/Watch", connect.NewServerStreamHandler("/notes.Notes/Watch", watch))
	handlers.Handle("/notes.Notes/Collect", connect.NewClientStreamHandler("/notes.Notes/Collect", collect))
	handlers.Handle("/notes.Notes/Chat", connect.NewBidiStreamHandler("/notes.Notes/Chat", chat))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handlers, Protocols: protocols}
	serveHTTP3(handlers, listener.Addr())
	fmt.Printf("listening on %s\n", listener.Addr())
	log.Fatal(server.Serve(listener))
}
