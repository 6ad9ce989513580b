// Runs a script and returns its recording as JSON.

import { here, notes, Unknown } from 'weigh:journal';
import * as values from 'weigh:values';
import * as status from 'weigh:status';
import * as draws from 'weigh:draws';
import * as http from 'weigh:http';
import * as k6 from 'weigh:k6';
import * as streams from 'weigh:streams';
import * as grpc from 'weigh:grpc';
import * as modules from 'weigh:modules';
import { operators, reached } from 'weigh:operators';

const stringify = JSON.stringify;

/** Makes the script's surroundings, before its first line runs. */
export function prepare(native, environment) {
  http.connect(native);
  streams.connect(native);
  grpc.connect(native);
  modules.connect(native);
  values.install();
  draws.install();
  status.install();
  const constant = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true });
  constant('__weigh', Object.freeze({ ...operators, environment: (names) => values.environment(environment, names) }));
  constant('__ENV', values.environment(environment));
  Object.defineProperty(globalThis, '__VU', { get: () => draws.record('user', modules.execution.user) });
  Object.defineProperty(globalThis, '__ITER', { get: () => draws.record('iteration', modules.execution.iteration) });
  constant('global', globalThis);
  const { uuidv4 } = modules.modules['k6-utils'];
  constant('crypto', { randomUUID: uuidv4, getRandomValues: (list) => list.map(() => Math.trunc(draws.random() * 256)) });
  const quiet = () => undefined;
  constant('console', { log: quiet, info: quiet, warn: quiet, error: quiet, debug: quiet });
  const { setTimeout, clearTimeout, setInterval, clearInterval } = modules.modules['k6/timers'];
  Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval });
  constant('open', (path, mode) => native.open(String(path), mode === 'b', here()?.file ?? ''));
  constant('require', (path) => required(String(path), native));
}

/** The part of an error that names a place of the script. */
function failure(error) {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  let place = null;
  for (const line of String(error?.stack ?? '').split('\n')) {
    const found = /\((\/.*):(\d+):(\d+)\)$/.exec(line) ?? /at (\/.*):(\d+):(\d+)$/.exec(line);
    if (found !== null) {
      place = { file: found[1], line: Number(found[2]), column: Number(found[3]) };
      break;
    }
  }
  return { text: error instanceof Unknown ? error.message : text, isUnknown: error instanceof Unknown, place };
}

/** The scenarios of the options: their names, functions and the highest number of users. */
function scenariosOf(options) {
  const found = Object.entries(options?.scenarios ?? {}).map(([name, scenario]) => ({
    name, exec: String(scenario?.exec ?? 'default'), environment: scenario?.env ?? {},
  }));
  return found.length === 0 ? [{ name: 'default', exec: 'default', environment: {} }] : found;
}

function usersOf(options) {
  const counts = [options?.vus];
  for (const stage of options?.stages ?? []) counts.push(stage?.target);
  for (const scenario of Object.values(options?.scenarios ?? {})) {
    counts.push(scenario?.vus, scenario?.startVUs, scenario?.preAllocatedVUs, scenario?.maxVUs);
    for (const stage of scenario?.stages ?? []) counts.push(stage?.target);
  }
  const known = counts.map((it) => (values.entryOf(it) === undefined ? Number(it) : NaN)).filter((it) => it >= 1);
  return Math.max(1, ...known);
}

/** Runs one function for all iterations. */
async function repeat(scenario, run, data, users) {
  const iterations = [];
  for (let number = 0; number < draws.iterations; number += 1) {
    Object.assign(modules.execution, {
      user: (number % users) + 1, iteration: Math.floor(number / users), total: number, scenario: scenario.name,
    });
    draws.begin(number);
    http.enter('load', scenario.name, number);
    streams.enter();
    grpc.enter();
    const before = http.requests.length;
    let ended = null;
    try {
      await run(values.copied(data));
      await modules.settled();
    } catch (error) {
      ended = failure(error);
    }
    ended ??= settled();
    iterations.push({ from: before, to: http.requests.length, drawn: draws.end(), ended, rest: http.rest() });
    if (ended !== null && http.requests.length === before) break;
  }
  return { name: scenario.name, exec: scenario.exec, iterations };
}

/** Records the streams of an iteration. Returns the error of a handler, or null. */
function settled() {
  try {
    streams.settle();
    grpc.settle();
    return null;
  } catch (error) {
    return failure(error);
  }
}

/** The options without placeholders, functions and repetition. */
function plain(value) {
  return JSON.parse(stringify(value ?? {}, (_, item) => (values.entryOf(item) !== undefined || typeof item === 'function' ? null : item)) ?? '{}');
}

async function setup(namespace) {
  if (typeof namespace.setup !== 'function') return [undefined, null];
  draws.begin(0);
  http.enter('setup', 'setup', 0);
  try {
    return [await namespace.setup(), null];
  } catch (error) {
    return [undefined, failure(error)];
  }
}

/** Runs the script: its setup once, and the function of each scenario several times. */
export async function run(entry) {
  // A script in the older form exports one object.
  const old = entry.default;
  const namespace = old !== null && typeof old === 'object' ? old : entry;
  const options = namespace.options ?? {};
  modules.setOptions(options);
  const [data, setupEnded] = await setup(namespace);
  const users = usersOf(options);
  const scenarios = [];
  const absent = [];
  for (const scenario of scenariosOf(options)) {
    const own = scenario.exec === 'default' ? namespace.default : namespace[scenario.exec];
    if (typeof own !== 'function') {
      absent.push(scenario.exec);
      continue;
    }
    const outer = globalThis.__ENV;
    globalThis.__ENV = overlaid(scenario.environment, outer);
    scenarios.push(await repeat(scenario, own, data, users));
    globalThis.__ENV = outer;
  }
  http.stage.name = 'end';
  const lists = draws.usedLists().map(({ number, rows }) => ({ number, rows: rowsOf(rows) }));
  return stringify({
    requests: http.requests, placeholders: values.descriptions(), scenarios, absent, setupEnded, notes,
    protos: grpc.protos, descriptors: grpc.descriptors, options: plain(options), unset: [...values.unset], used: [...k6.used], reached: [...reached], lists, users,
    functions: Object.keys(namespace).filter((name) => typeof namespace[name] === 'function'),
  });
}

function overlaid(own, outer) {
  return new Proxy(outer, { get: (known, name) => (Object.hasOwn(own, name) ? String(own[name]) : known[name]) });
}

/** A list as JSON, or null if it is too long for a lab. */
function rowsOf(rows) {
  if (rows.length > 100_000) return null;
  try {
    const text = stringify(rows);
    return text === undefined || text.length > 8_000_000 ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/** A module in the older form of imports. */
function required(path, native) {
  const known = modules.modules[path];
  return known === undefined ? native.require(path, here()?.file ?? '') : { ...known, default: known };
}

/** Describes an error for the user. */
export function explain(error) {
  return stringify(failure(error));
}
