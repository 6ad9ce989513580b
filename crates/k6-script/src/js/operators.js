// The operators of the language. The reader of scripts puts calls of these functions in place of operators, so
// that a placeholder is never compared or added as if it were a value.

import { note } from 'weigh:journal';
import { decides, entryOf, isUnset, numeric, placeholder, whole } from 'weigh:values';
import { statusOf } from 'weigh:status';
import { accessed } from 'weigh:draws';

/** A value for an operator: a status is a number, and an unset name of the environment is undefined. */
function plain(value) {
  const status = statusOf(value);
  if (status !== undefined) return status.number();
  return isUnset(value) ? undefined : value;
}

/** True if one of the values is a placeholder of an answer. */
function unknown(left, right) {
  return answerOf(left) ?? answerOf(right);
}

function answerOf(value) {
  const entry = whole(value);
  return entry === undefined || entry.description.kind === 'environment' ? undefined : entry;
}

function compare(left, right, whenUnknown, compared) {
  const [a, b] = [plain(left), plain(right)];
  const entry = unknown(a, b);
  if (entry === undefined) return compared(a, b);
  decides(entry);
  return whenUnknown;
}

/** True if both sides are equal. A status that is compared with a successful one becomes it. */
function equal(left, right, compared) {
  const status = statusOf(left) ?? statusOf(right);
  if (status !== undefined) {
    const other = statusOf(left) === undefined ? left : right;
    return status.equals(other, compared);
  }
  const [a, b] = [plain(left), plain(right)];
  const entry = unknown(a, b);
  if (entry === undefined) return compared(a, b);
  // A value of an answer is neither absent nor the same value twice.
  if (a === null || b === null || a === undefined || b === undefined) return false;
  if (answerOf(a) === answerOf(b)) return true;
  decides(entry);
  return true;
}

function arithmetic(symbol, left, right, computed) {
  const [a, b] = [plain(left), plain(right)];
  const entry = unknown(entryOf(a) && a, entryOf(b) && b);
  if (entry === undefined) return computed(a, b);
  const { answer, name } = entry.description;
  return placeholder({ kind: 'computed', answer: answer ?? null, name: `${name} in a calculation with ${symbol}` });
}

function add(left, right) {
  const [a, b] = [statusOf(left)?.number() ?? left, statusOf(right)?.number() ?? right];
  if (typeof a === 'string' || typeof b === 'string') return a + b;
  if (isUnset(a) && isUnset(b)) return `${a}${b}`;
  if (isUnset(a) && entryOf(b) === undefined) return typeof b === 'object' ? `${a}${b}` : NaN;
  if (isUnset(b) && entryOf(a) === undefined) return typeof a === 'object' ? `${a}${b}` : NaN;
  if (entryOf(a) !== undefined && entryOf(b) !== undefined) return `${a}${b}`;
  return arithmetic('+', a, b, (x, y) => x + y);
}

const BINARY = {
  '+': add,
  '-': (a, b) => arithmetic('-', a, b, (x, y) => x - y),
  '*': (a, b) => arithmetic('*', a, b, (x, y) => x * y),
  '/': (a, b) => arithmetic('/', a, b, (x, y) => x / y),
  '%': (a, b) => arithmetic('%', a, b, (x, y) => x % y),
  '**': (a, b) => arithmetic('**', a, b, (x, y) => x ** y),
  '|': (a, b) => arithmetic('|', a, b, (x, y) => x | y),
  '&': (a, b) => arithmetic('&', a, b, (x, y) => x & y),
  '^': (a, b) => arithmetic('^', a, b, (x, y) => x ^ y),
  '<<': (a, b) => arithmetic('<<', a, b, (x, y) => x << y),
  '>>': (a, b) => arithmetic('>>', a, b, (x, y) => x >> y),
  '>>>': (a, b) => arithmetic('>>>', a, b, (x, y) => x >>> y),
  '===': (a, b) => equal(a, b, (x, y) => x === y),
  '==': (a, b) => equal(a, b, (x, y) => x == y),
  '!==': (a, b) => !equal(a, b, (x, y) => x === y),
  '!=': (a, b) => !equal(a, b, (x, y) => x == y),
  '<': (a, b) => compare(a, b, entryOf(b) !== undefined, (x, y) => x < y),
  '<=': (a, b) => compare(a, b, entryOf(b) !== undefined, (x, y) => x <= y),
  '>': (a, b) => compare(a, b, entryOf(a) !== undefined, (x, y) => x > y),
  '>=': (a, b) => compare(a, b, entryOf(a) !== undefined, (x, y) => x >= y),
};

const UNARY = {
  '!': (value) => !truth(value),
  '-': (value) => arithmetic('-', 0, value, (_, x) => -x),
  '~': (value) => arithmetic('~', 0, value, (_, x) => ~x),
  '+': (value) => {
    const entry = answerOf(value);
    return entry === undefined ? +plain(value) : numeric(entry);
  },
  typeof: (value) => {
    const known = plain(value);
    return entryOf(known) === undefined ? typeof known : 'string';
  },
};

/** The value of a condition. */
function truth(value) {
  const known = plain(value);
  const entry = answerOf(known);
  if (entry !== undefined) decides(entry);
  return known;
}

/** A member by its index. Reading a list records the index, which may differ between iterations. */
function at(list, key) {
  const status = statusOf(key);
  if (status !== undefined) return list[status.number()];
  const entry = entryOf(key);
  if (entry === undefined) {
    if (Array.isArray(list)) accessed(list, key);
    return list[key];
  }
  if (entry.description.kind === 'environment') return list[key];
  note(`the script selects a value by ${entry.description.name}`);
  const { answer, name } = entry.description;
  return placeholder({ kind: 'computed', answer: answer ?? null, name: `a value selected by ${name}` });
}

/** Call sites of requests that ran. */
export const reached = new Set();

export const operators = {
  binary: (symbol, left, right) => BINARY[symbol](left, right),
  unary: (symbol, value) => UNARY[symbol](value),
  truth,
  // The left side of `||`, `&&` and `??`.
  left: (value) => {
    const status = statusOf(value);
    if (status !== undefined) return status.number();
    if (isUnset(value)) return undefined;
    const entry = answerOf(value);
    if (entry !== undefined) decides(entry);
    return value;
  },
  plain,
  at,
  site: (number, value) => {
    reached.add(number);
    return value;
  },
};
