// A subgraph of the library graphql-ws behind a Unix socket, and a client that subscribes through the
// gateway: prints what the client shows of each event, and how many operations the subgraph has at the
// end.
import { createServer } from "node:http";
import { ApolloClient, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { buildSchema } from "graphql";
import { createClient } from "graphql-sse";
import { useServer } from "graphql-ws/use/ws";
import { WebSocketServer } from "ws";

const [url, socket, kind] = process.argv.slice(2);

const schema = buildSchema(`
  type Query { products: [Product!]! }
  type Product { id: ID!, price: Int! }
  type Subscription { priceChanged(id: ID, events: Int): Product, count(to: Int!): Int, silence: Int, failing: Int }
`);
let open = 0;
const counted = async function* (events) {
  open += 1;
  try {
    yield* events;
  } finally {
    open -= 1;
  }
};
const roots = {
  subscription: {
    priceChanged: ({ id, events }) =>
      counted(
        (async function* () {
          for (let at = 1; at <= events; at++) yield { priceChanged: { id, price: at } };
        })(),
      ),
    // A generator that waits for ever could not be left.
    silence: () => {
      open += 1;
      const given = [{ silence: 0 }];
      return {
        [Symbol.asyncIterator]() {
          return this;
        },
        next: () =>
          given.length ? Promise.resolve({ value: given.pop(), done: false }) : new Promise(() => {}),
        return: () => {
          open -= 1;
          return Promise.resolve({ value: undefined, done: true });
        },
      };
    },
    failing: () => {
      throw new Error("no prices today");
    },
  },
};
const http = createServer();
const server = useServer({ schema, roots }, new WebSocketServer({ server: http, path: "/ws" }));
await new Promise((done) => http.listen(socket, done));

const prices = "subscription Prices($id: ID) { priceChanged(id: $id, events: 3) { id price reviews { score } } }";
const silence = "subscription { silence }";
const failing = "subscription { failing }";

const shown = (data) => {
  const product = data?.priceChanged;
  if (!product) return JSON.stringify(data);
  return `${product.id} costs ${product.price}, reviewed ${product.reviews.map((it) => it.score)}`;
};
const errors = (list) => (list?.length ? `; ${list.map((it) => it.message).join(", ")}` : "");

// Each of them calls `next` for an event, and `done` at the end, and gives what ends it early.
const apollo = () => {
  const client = new ApolloClient({ link: new HttpLink({ uri: url }), cache: new InMemoryCache() });
  return (query, variables, next, done) => {
    const events = client.subscribe({ query: gql(query), variables, errorPolicy: "all" });
    const running = events.subscribe({
      next: ({ data, error }) => next(shown(data) + errors(error?.errors ?? (error && [error]))),
      error: done,
      complete: done,
    });
    return () => running.unsubscribe();
  };
};
const sse = () => {
  const client = createClient({ url, retryAttempts: 0 });
  return (query, variables, next, done) =>
    client.subscribe(
      { query, variables },
      { next: ({ data, errors: list }) => next(shown(data) + errors(list)), error: done, complete: done },
    );
};

const subscribe = { apollo, sse }[kind]();
const run = (query, variables) =>
  new Promise((resolve) => {
    let hasLeft = false;
    const leave = subscribe(query, variables, (text) => {
      console.log(text);
      if (query === silence) {
        hasLeft = true;
        leave();
        resolve();
      }
    }, (error) => {
      if (!hasLeft) console.log(error ? `error: ${error.message}` : "complete");
      resolve();
    });
  });

await run(prices, { id: "7" });
await run(failing);
await run(silence);
const give = Date.now() + 5_000;
while (open > 0 && Date.now() < give) await new Promise((done) => setTimeout(done, 20));
console.log(`open: ${open}`);
await server.dispose();
http.close();
process.exit();
