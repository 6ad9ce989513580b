// Asks several questions at once with Apollo Client's link for batches, and prints how many operations
// each request held. The last line is the answers.
import { ApolloClient, InMemoryCache, gql } from "@apollo/client";
import { BatchHttpLink } from "@apollo/client/link/batch-http";

const [uri] = process.argv.slice(2);
const watched = async (url, options) => {
  const body = JSON.parse(options.body);
  console.log(Array.isArray(body) ? `a list of ${body.length}` : "one operation");
  return fetch(url, options);
};
const link = new BatchHttpLink({ uri, fetch: watched, batchInterval: 50 });
const client = new ApolloClient({ link, cache: new InMemoryCache() });
const ask = (text) => client.query({ query: gql(text), fetchPolicy: "no-cache" });
const answers = await Promise.allSettled([
  ask("query Names { locations { name } }"),
  ask("query Ids { locations { id } }"),
  ask("query Wrong { nothing }"),
]);
console.log(JSON.stringify(answers.map((it) => it.value?.data?.locations?.length ?? it.reason?.name)));
