// Asks by the id of a list of persisted queries with Apollo Client, and prints a line a request that it
// sent. The last line is the answer.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";

const [uri, id] = process.argv.slice(2);
const watched = async (url, options) => {
  console.log(options.method, "query" in JSON.parse(options.body) ? "with text" : "hash alone");
  return fetch(url, options);
};
const link = ApolloLink.from([
  new PersistedQueryLink({ generateHash: () => id }),
  new HttpLink({ uri, fetch: watched }),
]);
const client = new ApolloClient({ link, cache: new InMemoryCache() });
const query = gql`
  query Names {
    locations {
      name
    }
  }
`;
const answer = await client.query({ query, fetchPolicy: "no-cache" });
console.log(JSON.stringify(answer.data.locations.map((it) => it.name)));
