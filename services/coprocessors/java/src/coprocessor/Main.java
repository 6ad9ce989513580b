package coprocessor;

import java.io.IOException;

/** The coprocessor in Java: entry, port and stop. ../CONTRACT.md says what it does. */
final class Main {
    private Main() {}

    public static void main(String[] arguments) throws IOException {
        var token = new Token(variable("JWT_SECRET", "apollo"));
        var socket = System.getenv("SOCKET");
        var app = socket == null
                ? Serve.onPort(Integer.parseInt(variable("PORT", "3000")), token)
                : Serve.onSocket(socket, token);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            app.stop();
            // Told to stop, the machine would end with 143.
            Runtime.getRuntime().halt(0);
        }));
    }

    private static String variable(String name, String otherwise) {
        var value = System.getenv(name);
        return value == null ? otherwise : value;
    }
}
