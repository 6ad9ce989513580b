// Asks one question twice with Apollo Client and its link for persisted queries, and prints a line a
// request that it sent: its method, and whether the text went with it. The last line is the answer.
import { createHash } from "node:crypto";
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";

const [uri, how] = process.argv.slice(2);
const sha256 = async (text) => createHash("sha256").update(text).digest("hex");

const watched = async (url, options) => {
  const sent = options.method === "GET" ? new URL(url).searchParams.has("query") : "query" in JSON.parse(options.body);
  console.log(options.method, sent ? "with text" : "hash alone");
  return fetch(url, options);
};
const link = ApolloLink.from([
  new PersistedQueryLink({ sha256, useGETForHashedQueries: how === "get" }),
  new HttpLink({ uri, fetch: watched, headers: { "apollo-require-preflight": "true" } }),
]);
const client = new ApolloClient({ link, cache: new InMemoryCache() });
const query = gql`
  query Names {
    locations {
      name
    }
  }
`;
let answer;
for (let turn = 0; turn < 2; turn++) {
  answer = await client.query({ query, fetchPolicy: "no-cache" });
}
console.log(JSON.stringify(answer.data.locations.map((it) => it.name)));
