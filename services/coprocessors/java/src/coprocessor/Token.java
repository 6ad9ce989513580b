package coprocessor;

import com.auth0.jwt.JWT;
import com.auth0.jwt.JWTVerifier;
import com.auth0.jwt.algorithms.Algorithm;
import com.auth0.jwt.exceptions.JWTVerificationException;
import com.auth0.jwt.interfaces.Claim;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** The token check. */
final class Token {
    /** Who sent a request. */
    record Client(String name, String version) {}

    private final Algorithm algorithm;
    private final JWTVerifier verifier;

    Token(String secret) {
        algorithm = Algorithm.HMAC256(secret);
        // Only `exp` and `nbf` say whether a token holds.
        verifier = JWT.require(algorithm).acceptLeeway(0).ignoreIssuedAt().build();
    }

    /** The client that a header value names if its token can be believed, else null. */
    Client client(String value) {
        int space = value.indexOf(' ');
        if (space < 0 || !value.substring(0, space).equalsIgnoreCase("bearer")) {
            return null;
        }
        try {
            var claims = verifier.verify(value.substring(space + 1));
            return new Client(
                    text(claims.getClaim("client_name"), "coprocessor"),
                    text(claims.getClaim("client_version"), "loadtest"));
        } catch (JWTVerificationException | NullPointerException refused) {
            // The latter is what the library makes of a header that is `null`.
            return null;
        }
    }

    /** Answers a wish for a token. */
    ObjectNode create(ObjectNode wish) {
        var claims = JsonNodeFactory.instance.objectNode();
        claims.set("client_name", or(wish.get("clientName"), "coprocessor"));
        claims.set("client_version", or(wish.get("clientVersion"), "loadtest"));
        var token = JWT.create().withPayload(claims.toString()).sign(algorithm);
        return JsonNodeFactory.instance.objectNode().put("token", token);
    }

    private static JsonNode or(JsonNode wished, String otherwise) {
        return wished == null ? JsonNodeFactory.instance.textNode(otherwise) : wished;
    }

    private static String text(Claim claim, String otherwise) {
        if (claim.isMissing() || claim.isNull()) {
            return otherwise;
        }
        var text = claim.asString();
        return text == null ? claim.toString() : text;
    }
}
