package main

import "github.com/google/uuid"

type endpoint int

const (
	staticSubgraph endpoint = iota
	guidResponse
	clientAwareness
)

// decide answers one message, changing it only at the stage that the endpoint is for.
func decide(endpoint endpoint, message map[string]any, keys *keys) map[string]any {
	stage, _ := message["stage"].(string)
	switch {
	case endpoint == staticSubgraph && stage == "SubgraphRequest":
		return addSource(message)
	case endpoint == guidResponse && stage == "RouterResponse":
		return addIds(message)
	case endpoint == clientAwareness && stage == "RouterRequest":
		return identifyClient(message, keys)
	default:
		return message
	}
}

func addSource(message map[string]any) map[string]any {
	setHeader(message, "source", "coprocessor")
	return message
}

func addIds(message map[string]any) map[string]any {
	ids := make([]string, 10)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	setHeader(message, "GUID", ids...)
	return message
}

func identifyClient(message map[string]any, keys *keys) map[string]any {
	headers, _ := message["headers"].(map[string]any)
	values, _ := headers["authentication"].([]any)
	if len(values) > 0 {
		value, _ := values[0].(string)
		if client, ok := keys.client(value); ok {
			setHeader(message, "apollographql-client-name", client.name)
			setHeader(message, "apollographql-client-version", client.version)
			return message
		}
	}
	message["control"] = map[string]any{"break": 401}
	return message
}

// setHeader does nothing when the headers were not sent.
func setHeader(message map[string]any, name string, values ...string) {
	if headers, ok := message["headers"].(map[string]any); ok {
		headers[name] = values
	}
}
