// Composes one supergraph from the files of its subgraphs and prints it.
//
//   npm ci
//   node compose.mjs NAME=URL=FILE… > supergraph.graphql
//
// Run by hand when a subgraph changes; what it prints is committed, so that neither the build nor
// the tests need node.

import { readFileSync } from 'node:fs';
import { composeServices, compositionHasErrors } from '@theguild/federation-composition';
import { parse } from 'graphql';

const services = process.argv.slice(2).map((word) => {
  const [name, url, file] = word.split('=');
  if (!name || !url || !file) {
    console.error(`expected NAME=URL=FILE, found \`${word}\``);
    process.exit(2);
  }
  return { name, url, typeDefs: parse(readFileSync(file, 'utf8')) };
});

const result = composeServices(services);
if (compositionHasErrors(result)) {
  for (const error of result.errors) console.error(error.message);
  process.exit(1);
}
process.stdout.write(result.supergraphSdl.trimEnd() + '\n');
