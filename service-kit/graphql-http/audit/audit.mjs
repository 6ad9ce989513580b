// Runs every server audit of graphql-http against one URL.
//
// Prints a line for each audit and exits with 0 only when all of them are ok: a warning (SHOULD)
// and a notice (MAY) count as failures here, too.
//
//   node audit.mjs http://127.0.0.1:8080/graphql
//   node audit.mjs http://127.0.0.1:4000/ 'apollo-require-preflight: true'   (a header of every request)

import { serverAudits } from 'graphql-http';

const [url, ...lines] = process.argv.slice(2);
const more = lines.map((line) => line.split(/:\s*/, 2));
if (!url || more.some((header) => header.length !== 2)) {
  console.error("usage: node audit.mjs URL ['NAME: VALUE']...");
  process.exit(2);
}

const fetchFn = (target, { headers, ...rest } = {}) =>
  fetch(target, { ...rest, headers: { ...Object.fromEntries(more), ...headers } });

const counts = { ok: 0, notOk: 0 };
for (const audit of serverAudits({ url, fetchFn })) {
  let line;
  try {
    const result = await audit.fn();
    line = result.status === 'ok' ? undefined : `${result.status}: ${result.reason}`;
  } catch (error) {
    line = `error: ${error.cause ?? error}`;
  }
  counts[line ? 'notOk' : 'ok'] += 1;
  console.log(`${line ? 'NOT OK' : 'ok'} ${audit.id} ${audit.name}${line ? ` (${line})` : ''}`);
}

const total = counts.ok + counts.notOk;
console.log(`${counts.ok} of ${total} audits ok`);
process.exit(total > 0 && counts.notOk === 0 ? 0 : 1);
