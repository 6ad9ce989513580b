// Values that differ between iterations: random numbers, the clock, and rows of lists. Each is recorded, so
// that a part of a request can be traced to it.

import { here } from 'weigh:journal';

const TURNS = 20;
const START = Date.UTC(2026, 0, 1);
const BETWEEN_ITERATIONS = 90_061_007;

/** The recorded values of the running iteration, by key. */
let drawn = new Map();
/** How often a place drew in this iteration. */
let turns = new Map();
/** Rows of lists in this iteration: list to indexes. */
let rows = new Map();
/** Random numbers before the next: the state of the generator, and the number of draws. */
let state = 1;
let turn = 0;
let draws = 0;
let lastRandom = null;
let clock = START;
/** The number of each list, and the first and the last iteration that used it. */
const lists = new Map();

/** The number of iterations that the recording has. */
export const iterations = TURNS;

function next() {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 4294967296;
}

/** The place of this iteration in a shuffled order: each draw uses its own order. */
function shuffled(seed, position) {
  const order = Array.from({ length: TURNS }, (_, index) => index);
  let own = (seed * 2654435761 + 12345) >>> 0;
  for (let index = TURNS - 1; index > 0; index -= 1) {
    own = (Math.imul(own, 1664525) + 1013904223) >>> 0;
    const other = Math.floor((own / 4294967296) * (index + 1));
    [order[index], order[other]] = [order[other], order[index]];
  }
  return order[position];
}

/** A random number. Over all iterations, the draws with one number are spread evenly. */
export function random() {
  draws += 1;
  const share = draws > 1000 ? next() : (shuffled(draws, turn % TURNS) + next()) / TURNS;
  lastRandom = share;
  return share;
}

/** Begins an iteration. */
export function begin(number) {
  drawn = new Map();
  turns = new Map();
  rows = new Map();
  turn = number;
  draws = 0;
  state = (number * 7919 + 17) >>> 0;
  lastRandom = null;
  clock = START + number * BETWEEN_ITERATIONS;
}

/** The recorded values of the iteration. */
export function end() {
  for (const [list, indexes] of rows) {
    if (indexes.size === 1) drawn.set(`row|${identity(list)}`, [...indexes][0]);
  }
  return Object.fromEntries(drawn);
}

function identity(list) {
  if (!lists.has(list)) lists.set(list, { number: lists.size, first: turn, last: turn });
  const known = lists.get(list);
  known.last = turn;
  return known.number;
}

/** The lists of which several iterations used a row. */
export function usedLists() {
  const shared = [...lists].filter(([, known]) => known.last > known.first);
  return shared.map(([list, { number }]) => ({ number, rows: list }));
}

/** Records that the script read a row of a list. */
export function accessed(list, key) {
  const index = Number(key);
  if (list.length < 2 || !Number.isInteger(index) || index < 0 || index >= list.length) return;
  if (!rows.has(list)) rows.set(list, new Set());
  rows.get(list).add(index);
}

/** Records a drawn value under the place that drew it. */
export function record(kind, value) {
  const place = here();
  const site = `${kind}|${place?.file}:${place?.line}:${place?.column}`;
  const count = (turns.get(site) ?? 0) + 1;
  turns.set(site, count);
  drawn.set(`${kind}|${place?.line ?? 0}|${count}|${place?.column ?? 0}`, value);
  return value;
}

/** A random whole number, recorded with its range. */
export function between(from, to) {
  return record(`range|${from}|${to}`, Math.floor(random() * (to - from + 1)) + from);
}

/** The time, which passes only by pauses and reads. */
export function now() {
  clock += 1;
  return clock;
}

/** Lets time pass. */
export function pass(milliseconds) {
  if (milliseconds > 0) clock += milliseconds;
}

/** Replaces clock and random numbers of the language. */
export function install() {
  Math.random = random;
  for (const name of ['floor', 'ceil', 'round', 'trunc']) {
    const plain = Math[name];
    Math[name] = (value) => {
      const result = plain(value);
      // A random number times a whole number has a range.
      const factor = lastRandom === null ? NaN : value / lastRandom;
      const whole = Math.round === undefined ? NaN : Number(factor.toFixed(6));
      if (Number.isInteger(whole) && whole >= 2 && Math.abs(factor - whole) < 1e-6) {
        const [from, to] = name === 'ceil' ? [1, whole] : [0, name === 'round' ? whole : whole - 1];
        record(`range|${from}|${to}`, result);
      }
      return result;
    };
  }
  const Plain = Date;
  const stamp = () => record('clock', now());
  globalThis.Date = class Date extends Plain {
    constructor(...list) {
      if (list.length === 0) super(stamp());
      else super(...list);
    }

    static now() {
      return stamp();
    }
  };
}
