package coprocessor;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.UUID;

/** The pure decision: which message is changed, and how. */
final class Decide {
    /** Which endpoint a message came to. */
    enum Endpoint { STATIC_SUBGRAPH, GUID_RESPONSE, CLIENT_AWARENESS }

    private Decide() {}

    /** Answers one message, changing it only at the stage that the endpoint is for. */
    static ObjectNode decide(Endpoint endpoint, ObjectNode message, Token token) {
        var stage = message.path("stage").textValue();
        if (endpoint == Endpoint.STATIC_SUBGRAPH && "SubgraphRequest".equals(stage)) {
            return addSource(message);
        } else if (endpoint == Endpoint.GUID_RESPONSE && "RouterResponse".equals(stage)) {
            return addIds(message);
        } else if (endpoint == Endpoint.CLIENT_AWARENESS && "RouterRequest".equals(stage)) {
            return identifyClient(message, token);
        } else {
            return message;
        }
    }

    private static ObjectNode addSource(ObjectNode message) {
        setHeader(message, "source", message.arrayNode().add("coprocessor"));
        return message;
    }

    private static ObjectNode addIds(ObjectNode message) {
        var ids = message.arrayNode(10);
        for (int count = 0; count < 10; count++) {
            ids.add(UUID.randomUUID().toString());
        }
        setHeader(message, "GUID", ids);
        return message;
    }

    private static ObjectNode identifyClient(ObjectNode message, Token token) {
        var value = message.path("headers").path("authentication").path(0).textValue();
        var client = value == null ? null : token.client(value);
        if (client == null) {
            message.putObject("control").put("break", 401);
        } else {
            setHeader(message, "apollographql-client-name", message.arrayNode().add(client.name()));
            setHeader(message, "apollographql-client-version", message.arrayNode().add(client.version()));
        }
        return message;
    }

    /** Does nothing when the headers were not sent. */
    private static void setHeader(ObjectNode message, String name, ArrayNode values) {
        JsonNode headers = message.get("headers");
        if (headers instanceof ObjectNode map) {
            map.set(name, values);
        }
    }
}
