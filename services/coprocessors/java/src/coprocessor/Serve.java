package coprocessor;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import coprocessor.Decide.Endpoint;
import io.javalin.Javalin;
import io.javalin.compression.CompressionStrategy;
import io.javalin.config.JavalinConfig;
import io.javalin.http.BadRequestResponse;
import io.javalin.http.ContentTooLargeResponse;
import io.javalin.http.Context;
import io.javalin.http.Handler;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.UnaryOperator;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.GracefulHandler;
import org.eclipse.jetty.unixdomain.server.UnixDomainServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** The HTTP shell: routes, bodies, listening, stopping. */
final class Serve {
    /** Largest message, as in the other languages. */
    private static final int BODY_LIMIT = 16 << 20;
    /** How long requests under way may take after a stop, in milliseconds. */
    private static final long GRACE = 9_000;
    /** A body that is still on its way holds a thread. */
    private static final int THREADS = 1_000;
    /** Numbers come back digit by digit as they came. */
    private static final JsonMapper JSON = JsonMapper.builder()
            .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .build();

    private Serve() {}

    /** Serves on all interfaces. */
    static Javalin onPort(int port, Token token) {
        return start(token, (server, http) -> {
            var connector = new ServerConnector(server, new HttpConnectionFactory(http));
            connector.setPort(port);
            return connector;
        });
    }

    /** Serves on a Unix socket. */
    static Javalin onSocket(String path, Token token) throws IOException {
        // What a killed predecessor left behind would be in the way.
        Files.deleteIfExists(Path.of(path));
        return start(token, (server, http) -> {
            var connector = new UnixDomainServerConnector(server, new HttpConnectionFactory(http));
            connector.setUnixDomainPath(Path.of(path));
            return connector;
        });
    }

    private interface Listening {
        Connector on(Server server, HttpConfiguration http);
    }

    private static Javalin start(Token token, Listening listening) {
        return Javalin.start(config -> {
            config.startup.showJavalinBanner = false;
            config.startup.startupWatcherEnabled = false;
            config.http.compressionStrategy = CompressionStrategy.NONE;
            config.http.prefer405over404 = true;
            config.router.ignoreTrailingSlashes = false;
            config.jetty.threadPool = new QueuedThreadPool(THREADS);
            config.jetty.modifyHttpConfiguration(http -> http.setSendServerVersion(false));
            config.jetty.modifyServer(server -> {
                server.insertHandler(new GracefulHandler());
                server.setStopTimeout(GRACE);
            });
            config.jetty.addConnector(listening::on);
            routes(config, token);
        });
    }

    private static void routes(JavalinConfig config, Token token) {
        message(config, "/static-subgraph", Endpoint.STATIC_SUBGRAPH, token);
        message(config, "/guid-response", Endpoint.GUID_RESPONSE, token);
        message(config, "/client-awareness", Endpoint.CLIENT_AWARENESS, token);
        config.routes.post("/create-jwt", answer(token::create));
        // What java-jwt does not sign, such as numbers beyond 64 bits.
        config.routes.exception(IllegalArgumentException.class, (error, context) ->
                context.status(400).result("a token cannot claim this"));
        config.routes.get("/health", context -> reply(context, JSON.createObjectNode().put("status", "UP")));
    }

    private static void message(JavalinConfig config, String path, Endpoint endpoint, Token token) {
        config.routes.post(path, answer(message -> Decide.decide(endpoint, message, token)));
    }

    private static Handler answer(UnaryOperator<ObjectNode> decision) {
        return context -> reply(context, decision.apply(readMessage(context)));
    }

    private static ObjectNode readMessage(Context context) throws IOException {
        var body = context.bodyInputStream().readNBytes(BODY_LIMIT + 1);
        if (body.length > BODY_LIMIT) {
            throw new ContentTooLargeResponse("the message is too large");
        }
        // The library skips a byte order mark, which no JSON begins with.
        if (body.length > 0 && body[0] == (byte) 0xEF) {
            throw new BadRequestResponse("expected no byte order mark");
        }
        try {
            if (JSON.readTree(body) instanceof ObjectNode message) {
                return message;
            }
        } catch (JsonProcessingException error) {
            throw new BadRequestResponse(error.getOriginalMessage());
        }
        throw new BadRequestResponse("expected an object");
    }

    private static void reply(Context context, ObjectNode message) throws IOException {
        context.contentType("application/json").result(JSON.writeValueAsBytes(message));
    }
}
