// A subgraph of Apollo Server that sends events by HTTP callbacks, behind a Unix socket, and a client that
// subscribes through the gateway: prints what the client gets, line by line, and whether the subgraph
// notices that a client has left.
import { ApolloServer } from "@apollo/server";
import { ApolloServerPluginSubscriptionCallback } from "@apollo/server/plugin/subscriptionCallback";
import { startStandaloneServer } from "@apollo/server/standalone";

const [url, socket] = process.argv.slice(2);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const typeDefs = `
  type Query { products: [Product!]! }
  type Product { id: ID!, price: Int! }
  type Subscription { count(to: Int!, everyMs: Int = 0): Int, silence: Int }
`;
let left;
const hasLeft = new Promise((done) => (left = done));
const count = async function* (_, { to, everyMs }) {
  for (let at = 1; at <= to; at++) {
    await pause(everyMs);
    yield { count: at };
  }
};
// Gives numbers until it is returned from.
const silence = () => {
  let at = 0;
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: async () => {
      await pause(200);
      return { value: { silence: at++ }, done: false };
    },
    return: async () => {
      left();
      return { value: undefined, done: true };
    },
  };
};
const server = new ApolloServer({
  typeDefs,
  resolvers: { Subscription: { count: { subscribe: count }, silence: { subscribe: silence } } },
  plugins: [ApolloServerPluginSubscriptionCallback({ logger: { debug() {}, info() {}, warn: console.log, error() {} } })],
  csrfPrevention: false,
});
await startStandaloneServer(server, { listen: { path: socket } });

const subscribe = async (query, each) => {
  const leaving = new AbortController();
  const headers = { "content-type": "application/json", accept: "text/event-stream" };
  const response = await fetch(url, {
    method: "POST",
    headers,
    body: JSON.stringify({ query }),
    signal: leaving.signal,
  });
  let text = "";
  for await (const bytes of response.body.pipeThrough(new TextDecoderStream())) {
    text += bytes;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const event = text.slice(0, end).replaceAll("\n", " ");
      if (event !== ":" && each(event)) return leaving.abort();
    }
  }
};

await subscribe("subscription { count(to: 3, everyMs: 50) }", (event) => console.log(event));
await subscribe("subscription { silence }", () => true);
console.log(await Promise.race([hasLeft.then(() => "left"), pause(20_000).then(() => "still there")]));
process.exit();
