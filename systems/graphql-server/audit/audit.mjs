// Runs every server audit of graphql-http against one URL.
//
// Prints a line for each audit and exits with 0 only when all of them are ok: a warning (SHOULD)
// and a notice (MAY) count as failures here, too.
//
//   node audit.mjs http://127.0.0.1:8080/graphql

import { serverAudits } from 'graphql-http';

const [url, ...rest] = process.argv.slice(2);
if (!url || rest.length > 0) {
  console.error('usage: node audit.mjs URL');
  process.exit(2);
}

const counts = { ok: 0, notOk: 0 };
for (const audit of serverAudits({ url })) {
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
