// An OpenTelemetry collector for the gateway's tests: the project's own receiver of OTLP and its
// exporter to files, in its own service. What `ocb` writes, without the collector's measurements of
// itself, which take most of the time to build one.
package main

import (
	"context"
	"log"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
	"go.uber.org/zap"
)

func factories() (otelcol.Factories, error) {
	otlp, file := otlpreceiver.NewFactory(), fileexporter.NewFactory()
	return otelcol.Factories{
		Receivers: map[component.Type]receiver.Factory{otlp.Type(): otlp},
		Exporters: map[component.Type]exporter.Factory{file.Type(): file},
		Telemetry: telemetry.NewFactory(
			func() component.Config { return &struct{}{} },
			telemetry.WithCreateLogger(logger),
		),
	}, nil
}

// The log is lines of JSON on standard error. They name the ports.
func logger(context.Context, telemetry.LoggerSettings, component.Config) (*zap.Logger, component.ShutdownFunc, error) {
	logger, err := zap.NewProductionConfig().Build()
	return logger, nil, err
}

func main() {
	file := []confmap.ProviderFactory{fileprovider.NewFactory()}
	collector := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otelcol", Version: "0.165.0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{ProviderFactories: file, DefaultScheme: "file"},
		},
	}
	if err := otelcol.NewCommand(collector).Execute(); err != nil {
		log.Fatal(err)
	}
}
