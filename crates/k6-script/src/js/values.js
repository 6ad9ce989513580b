// Placeholders for values that exist only during a run: values of answers and of the environment.
//
// A placeholder becomes a mark when it becomes text: its number between two characters of a private area.
// The recording contains the table of all marks, so that every text can be split into its parts.

import { fail, note } from 'weigh:journal';

const OPEN = '\uE000';
const CLOSE = '\uE001';
const ENCODED_OPEN = '%EE%80%80';
const ENCODED_CLOSE = '%EE%80%81';

const stringify = JSON.stringify;
const parse = JSON.parse;
const isArray = Array.isArray;

/** All placeholders by number: their description for the recording, and their proxy. */
const table = [];
/** The numbers of known placeholders, by description. */
const numbers = new Map();
/** The number of each proxy. */
const proxies = new WeakMap();

/** Names of the environment that the script reads and that have no value. */
export const unset = new Set();

/** Functions that a script calls on texts, lists and numbers of an answer. */
const METHODS = new Set([
  'map', 'forEach', 'filter', 'some', 'every', 'find', 'findIndex', 'flatMap', 'reduce', 'join', 'slice', 'at',
  'match', 'matchAll', 'includes', 'startsWith', 'endsWith', 'indexOf', 'lastIndexOf', 'split', 'trim', 'replace',
  'replaceAll', 'substring', 'substr', 'toUpperCase', 'toLowerCase', 'toFixed', 'charAt', 'charCodeAt', 'concat',
  'toString', 'valueOf', 'toJSON', 'padStart', 'padEnd', 'hasOwnProperty', 'pop', 'shift', 'push', 'sort', 'reverse',
  'each', 'keys', 'entries', 'values', 'search', 'repeat', 'trimStart', 'trimEnd', 'localeCompare', 'normalize', 'test',
]);

/** The description of a value without a place in an answer. */
function computed(parent, text) {
  const own = { kind: 'computed', answer: parent.answer ?? null, name: `${parent.name}${text}` };
  return placeholder(parent.isHtml ? { ...own, isHtml: true } : own);
}

/** The placeholder with this description. Equal descriptions have one placeholder. */
export function placeholder(description) {
  const key = stringify(description);
  const known = numbers.get(key);
  if (known !== undefined) return table[known].proxy;
  const number = table.length;
  const entry = { description, changed: false, proxy: null };
  table.push(entry);
  numbers.set(key, number);
  entry.proxy = new Proxy(() => undefined, traps(entry, number));
  proxies.set(entry.proxy, number);
  return entry.proxy;
}

/** The entry of a placeholder, or undefined for any other value. */
export function entryOf(value) {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return undefined;
  const number = proxies.get(value);
  return number === undefined ? undefined : table[number];
}

/** True for a name of the environment without a value. */
export function isUnset(value) {
  return entryOf(value)?.description.kind === 'environment';
}

/** The mark of a placeholder in a text. Letters before its number are notations: see `reader.rs`. */
function mark(entry, number) {
  if (entry.changed) return String(computed(entry.description, ', changed by the script'));
  return `${OPEN}${number}${CLOSE}`;
}

function member(description, name) {
  if (description.kind === 'json') {
    return placeholder({ ...description, path: [...description.path, name], name: `${description.name}.${name}` });
  }
  if (description.kind === 'matches') {
    return /^\d+$/.test(name) ? group(description, Number(name)) : computed(description, `.${name}`);
  }
  return computed(description, `.${name}`);
}

/** The first list entry of an answer stands for all of them. */
function first(entry) {
  note('the script goes through a list in an answer. The recording contains its first entry only');
  return member(entry.description, '0');
}

/** A group of a regular expression in the body of an answer. */
function group(description, index) {
  const { answer, pattern, groups, name } = description;
  if (index > 1 || (index === 0 && groups > 0)) return computed(description, `[${index}]`);
  return placeholder({ kind: 'pattern', answer, pattern, name });
}

/** The matches of a regular expression in a placeholder. */
export function matches(entry, given) {
  const { description } = entry;
  const expression = typeof given === 'string' ? new RegExp(given) : given;
  if (description.kind !== 'body' || !(expression instanceof RegExp)) {
    return computed(description, `.match(${expression})`);
  }
  let flags = '';
  for (const flag of 'ism') if (expression.flags.includes(flag)) flags += flag;
  const pattern = flags === '' ? expression.source : `(?${flags})${expression.source}`;
  const groups = new RegExp(`${expression.source}|`, expression.flags.replace(/[gy]/g, '')).exec('').length - 1;
  const name = `${description.name}.match(${expression})`;
  return placeholder({ kind: 'matches', answer: description.answer, pattern, groups, name });
}

function call(entry, list) {
  const { description } = entry;
  const { parent, method } = split(description);
  if (parent === undefined) {
    if (description.kind === 'computed') return computed(description, '(…)');
    fail(`calls ${description.name}, a value of an answer`);
  }
  const owner = entryOf(parent);
  switch (method) {
    case 'toString': case 'valueOf': return mark(owner, proxies.get(parent));
    case 'map': case 'each':
      // A selection of HTML calls with the index first.
      if (owner.description.isHtml) return [list[0](0, first(owner))];
      return [list[0](first(owner), 0, parent)];
    case 'flatMap': return [list[0](first(owner), 0, parent)];
    case 'forEach': list[0](first(owner), 0, parent); return undefined;
    case 'filter': return [first(owner)];
    case 'slice': return list.length === 0 ? parent : computed(owner.description, '.slice(…)');
    case 'at': return member(owner.description, String(list[0]));
    case 'match': return matches(owner, list[0]);
    case 'trim': return parent;
    case 'some': case 'every': case 'includes': case 'startsWith': case 'endsWith': case 'hasOwnProperty':
      decides(owner);
      return true;
    case 'indexOf': case 'search': decides(owner); return 0;
    case 'push': case 'sort': case 'reverse': owner.changed = true; return parent;
    default: return computed(owner.description, `.${method}(…)`);
  }
}

/** The owner and the name of a method that a script calls on a placeholder. */
function split(description) {
  const parts = owners.get(description);
  return parts !== undefined && METHODS.has(parts.method) ? parts : { parent: undefined, method: undefined };
}

/** Owner and name of descriptions that came from the access to a member. */
const owners = new WeakMap();

function traps(entry, number) {
  return {
    get(_, name, receiver) {
      if (name === Symbol.toPrimitive) return (hint) => primitive(entry, number, hint);
      if (name === Symbol.iterator) return function* () { yield first(entry); };
      if (name === Symbol.toStringTag) return 'String';
      if (typeof name === 'symbol' || name === 'then' || name === 'constructor' || name === 'prototype') return undefined;
      if (name === 'toString' || name === 'valueOf') return () => mark(entry, number);
      // A value in JSON has its own quotes, if any. The reader of the recording removes the quotes around it.
      if (name === 'toJSON') return () => mark(entry, `${entry.description.isNumber ? 'n' : 'j'}${number}`);
      if (name === 'length' && entry.description.kind !== 'environment') {
        note(`the script reads the length of ${entry.description.name}. The recording assumes 1`);
        return 1;
      }
      const found = member(entry.description, name);
      owners.set(entryOf(found).description, { parent: entry.proxy, method: name });
      return found;
    },
    set() { entry.changed = true; return true; },
    deleteProperty() { entry.changed = true; return true; },
    has() { return true; },
    ownKeys() { fail(`lists the members of ${entry.description.name}, which exist only during a run`); },
    apply(_, self, list) { return call(entry, list); },
    construct() { return computed(entry.description, ' as a class'); },
  };
}

function primitive(entry, number, hint) {
  if (hint !== 'number') return mark(entry, number);
  if (entry.description.kind === 'environment') return NaN;
  return fail(`computes with ${entry.description.name}, which exists only during a run`);
}

let decided = 0;

/** How often the way of the script depended on a value of an answer. */
export function decisions() {
  return decided;
}

/** Notes that the way of the script depends on a value of an answer. */
export function decides(entry) {
  decided += 1;
  if (entry.description.kind === 'environment') return;
  note(`the script decides by ${entry.description.name}. The recording follows a successful answer`);
}

/** The environment. A name without a value is a placeholder. */
export function environment(values, plain = []) {
  const absent = new Set(plain);
  return new Proxy({ ...values }, {
    get(known, name) {
      if (typeof name === 'symbol' || name in known) return known[name];
      unset.add(name);
      return absent.has(name) ? undefined : placeholder({ kind: 'environment', name: `__ENV.${name}`, variable: name });
    },
  });
}

/** The placeholders of a text: `[]` if it contains none. */
export function marksIn(text) {
  return [...String(text).matchAll(/\uE000[a-z]*(\d+)\uE001/g)].map((found) => table[Number(found[1])]);
}

/** The placeholder that is all of a text, or undefined. */
export function whole(value) {
  const entry = entryOf(value);
  if (entry !== undefined) return entry;
  if (typeof value !== 'string') return undefined;
  // Without a regular expression, because their functions call this one.
  if (value[0] !== OPEN || value.indexOf(CLOSE) !== value.length - 1) return undefined;
  let begin = 1;
  while (value[begin] >= 'a' && value[begin] <= 'z') begin += 1;
  return table[Number(value.slice(begin, -1))];
}

/** Replaces a function of texts by one that keeps marks. The notation goes into each mark. */
function keepingMarks(encode, notation) {
  return (value) => {
    const text = encode(String(value));
    return text.replaceAll(ENCODED_OPEN, OPEN + notation).replaceAll(ENCODED_CLOSE, CLOSE);
  };
}

/** JSON of a value. A mark within a text stands for an escaped value. */
function stringified(value, replacer, space) {
  const text = stringify(value, replacer, space);
  if (text === undefined) return text;
  // Marks from `toJSON` are of another kind already.
  return text.replaceAll(/\uE000([^jn])/g, `${OPEN}e$1`);
}

/** The result of a function for a placeholder: a value without a place in an answer. */
export function through(name, value, plain) {
  const entry = whole(value) ?? (typeof value === 'string' ? marksIn(value)[0] : undefined);
  if (entry === undefined) return plain(value);
  const { description } = entry;
  return placeholder({ kind: 'computed', answer: description.answer ?? null, name: `${name}(${description.name})` });
}

/** A copy of a value, as a script receives it from `setup`. Placeholders stay. */
export function copied(value) {
  if (entryOf(value) !== undefined || value === null || typeof value !== 'object') {
    return typeof value === 'function' && entryOf(value) === undefined ? undefined : value;
  }
  if (typeof value.toJSON === 'function') return copied(value.toJSON());
  if (isArray(value)) return value.map((item) => copied(item) ?? null);
  const copy = {};
  for (const [name, item] of Object.entries(value)) {
    const own = copied(item);
    if (own !== undefined) copy[name] = own;
  }
  return copy;
}

/** The table of all placeholders, for the recording. */
export function descriptions() {
  return table.map((entry) => entry.description);
}

/** Replaces functions of the language that lose a placeholder. */
export function install() {
  globalThis.encodeURIComponent = keepingMarks(encodeURIComponent, 'u');
  globalThis.encodeURI = keepingMarks(encodeURI, '');
  const exec = RegExp.prototype.exec;
  const test = RegExp.prototype.test;
  // Functions of texts call `exec` with a text. Only a placeholder itself is the body of an answer.
  RegExp.prototype.exec = function (text) {
    const entry = entryOf(text);
    return entry === undefined ? exec.call(this, text) : matches(entry, this);
  };
  RegExp.prototype.test = function (text) {
    const entry = entryOf(text);
    if (entry === undefined) return test.call(this, text);
    decides(entry);
    return true;
  };
  JSON.stringify = stringified;
  JSON.parse = function (text, reviver) {
    const entry = whole(text);
    if (entry === undefined) return parse(text, reviver);
    const { description } = entry;
    if (description.kind !== 'body') return entry.proxy;
    return placeholder({ kind: 'json', answer: description.answer, path: [], name: `JSON.parse(${description.name})` });
  };
  for (const name of ['parseInt', 'parseFloat']) {
    const plain = globalThis[name];
    globalThis[name] = (value, radix) => number(value, (it) => plain(it, radix));
  }
  globalThis.Number = new Proxy(Number, {
    apply(plain, self, list) { return list.length === 0 ? 0 : number(list[0], plain); },
  });
}

/** A number of an answer keeps its placeholder. */
function number(value, plain) {
  const entry = whole(value);
  if (entry === undefined) return plain(value);
  return entry.description.kind === 'environment' ? NaN : numeric(entry);
}

/** The same value as a number. */
export function numeric(entry) {
  return placeholder({ ...entry.description, isNumber: true });
}
