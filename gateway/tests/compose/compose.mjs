// Composes one supergraph from the files of its subgraphs and prints it.
//
//   npm ci
//   node compose.mjs [--composer=theguild|apollo] NAME=URL=FILE… > supergraph.graphql
//
// Run by hand when a subgraph changes; what it prints is committed, so that neither the build nor
// the tests need node. `theguild` is the default; `apollo` knows Federation 2.10 and later, too, and
// writes what most supergraphs in use look like.

import { readFileSync } from 'node:fs';
import { parse } from 'graphql';

const words = process.argv.slice(2);
const composer = words[0]?.startsWith('--composer=') ? words.shift().split('=')[1] : 'theguild';

const services = words.map((word) => {
  const [name, url, file] = word.split('=');
  if (!name || !url || !file) {
    console.error(`expected NAME=URL=FILE, found \`${word}\``);
    process.exit(2);
  }
  return { name, url, typeDefs: parse(readFileSync(file, 'utf8')) };
});

// Each is loaded only where it is used: they bring different versions of their own parts.
const packages = { theguild: '@theguild/federation-composition', apollo: '@apollo/composition' };
if (!(composer in packages)) {
  console.error(`expected theguild or apollo, found \`${composer}\``);
  process.exit(2);
}
const { composeServices } = await import(packages[composer]);
const result = composeServices(services);
if (result.errors?.length) {
  for (const error of result.errors) console.error(error.message);
  process.exit(1);
}
process.stdout.write(result.supergraphSdl.trimEnd() + '\n');
