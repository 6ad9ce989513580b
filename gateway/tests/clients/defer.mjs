// Asks with a deferred fragment, and prints what Apollo Client shows after each part.
import { ApolloClient, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { Defer20220824Handler, GraphQL17Alpha9Handler } from "@apollo/client/incremental";

const [uri, format] = process.argv.slice(2);
const incrementalHandler =
  format === "20220824" ? new Defer20220824Handler() : new GraphQL17Alpha9Handler();
const client = new ApolloClient({
  link: new HttpLink({ uri }),
  cache: new InMemoryCache(),
  incrementalHandler,
});
const query = gql`
  query Ratings {
    locations {
      id
      name
      ... @defer(label: "ratings") {
        overallRating
      }
    }
  }
`;
client.watchQuery({ query, errorPolicy: "all" }).subscribe(({ data, dataState, error }) => {
  if (dataState === "empty") return;
  const ratings = data.locations.map((it) => `${it.name} ${it.overallRating ?? "-"}`);
  console.log(`${dataState}: ${ratings.join(", ")}${error ? `; ${error.message}` : ""}`);
});
