module weighbridge.dev/labs/layers/traces

go 1.26
