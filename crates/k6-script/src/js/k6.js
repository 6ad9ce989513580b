// k6: checks, groups and pauses.

import { here, note, noteAt, quietly, fail as stop } from 'weigh:journal';
import { expectStatus, isTrial, tried } from 'weigh:status';
import { entryOf, whole } from 'weigh:values';
import { pass } from 'weigh:draws';
import { pausing, within } from 'weigh:http';
import { paused as pausedStream } from 'weigh:streams';

/** The statuses that a check at one place accepts, as `tried` found them in the first iteration. */
const known = new Map();
/** Facts about the script: which functions it used. */
export const used = new Set();

function statusesOf(key, run) {
  const found = quietly(() => tried(run, known.get(key)));
  if (found.requests.length > 0) known.set(key, found.numbers);
  return found;
}

/** Checks never fail. A check of a status becomes the expected status of its request. */
export function check(value, sets) {
  if (isTrial()) return true;
  const place = here();
  for (const [name, condition] of Object.entries(sets ?? {})) {
    if (typeof condition !== 'function' || entryOf(condition) !== undefined) continue;
    const { requests, numbers } = statusesOf(`${place?.line}:${name}`, () => condition(value));
    if (requests.length === 1) expectStatus(requests[0], numbers);
    if (requests.length > 1) noteAt(place, `the check \`${name}\` reads the status of several answers`);
    if (requests.length === 0 || numbers.length === 0 || numbers.length === 500) used.add('check');
  }
  return true;
}

/** Runs a function. */
export function group(name, run) {
  return within(name, run);
}

/** Lets time pass. The next request of the recording has the pause. */
export function sleep(seconds) {
  used.add('sleep');
  const entry = whole(seconds);
  const length = entry === undefined ? Number(seconds) * 1000 : NaN;
  if (Number.isNaN(length)) {
    note(`the length of a pause is not known${entry === undefined ? '' : `: ${entry.description.name}`}. It is left out`);
    return;
  }
  pass(length);
  if (!pausedStream(length)) pausing(length);
}

/** Ends the iteration. */
export function fail(text) {
  if (isTrial()) return;
  stop(`ends the iteration: ${text ?? 'fail()'}`);
}

/** Random numbers of a recording have a seed of their own. */
export function randomSeed() {
  note('the script sets a seed for random numbers. The recording has its own');
}
