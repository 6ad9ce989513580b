// The modules of k6 and of its library of scripts, apart from k6/http. Each export is a member of `modules`.

import { fail, here, note, noteAt } from 'weigh:journal';
import { entryOf, placeholder, through } from 'weigh:values';
import { expectStatus, statusOf } from 'weigh:status';
import { accessed, between, pass, random, record } from 'weigh:draws';
import { findBetween, module as http, stage } from 'weigh:http';
import * as k6 from 'weigh:k6';
import * as streams from 'weigh:streams';
import { module as grpc } from 'weigh:grpc';
import { URL, URLSearchParams } from 'weigh:url';

/** Functions and values of the host. */
let native = null;
/** The numbers of the running iteration and its user. */
export const execution = { user: 1, iteration: 0, total: 0, scenario: 'default' };

/** Receives the functions of the host. */
export function connect(given) {
  native = given;
}

// k6/data

class SharedArray {
  constructor(_, make) {
    const list = make();
    if (!Array.isArray(list)) throw new TypeError('only arrays can be made into SharedArray');
    return new Proxy(list, {
      get(target, key) {
        if (typeof key === 'string' && /^\d+$/.test(key)) accessed(target, key);
        return target[key];
      },
      set() { throw new TypeError('SharedArray is immutable'); },
    });
  }
}

// k6/encoding and k6/crypto

function bytesOf(data) {
  if (data instanceof ArrayBuffer) return [...new Uint8Array(data)];
  if (ArrayBuffer.isView(data)) return [...new Uint8Array(data.buffer, data.byteOffset, data.byteLength)];
  return String(data);
}

const LABELS = { std: [false, true], rawstd: [false, false], url: [true, true], rawurl: [true, false] };

function b64encode(data, kind = 'std') {
  const [url, padded] = LABELS[kind] ?? LABELS.std;
  return through('b64encode', data, (it) => {
    const text = native.base64(bytesOf(it));
    const safe = url ? text.replaceAll('+', '-').replaceAll('/', '_') : text;
    return padded ? safe : safe.replaceAll('=', '');
  });
}

function b64decode(data, kind, format) {
  return through('b64decode', data, (it) => {
    const bytes = native.unbase64(String(it).replaceAll('-', '+').replaceAll('_', '/').replaceAll('=', ''));
    return format === 's' ? native.text([...bytes]) : bytes.buffer;
  });
}

const ALGORITHMS = ['md5', 'sha1', 'sha256', 'sha384', 'sha512'];

function output(bytes, format) {
  if (format === 'hex') return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  if (format === 'base64') return native.base64([...bytes]);
  if (format === 'base64url') return native.base64([...bytes]).replaceAll('+', '-').replaceAll('/', '_');
  if (format === 'base64rawurl') return native.base64([...bytes]).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return bytes.buffer;
}

function digest(algorithm, data, format) {
  if (!ALGORITHMS.includes(algorithm)) return unavailable(`k6/crypto ${algorithm}`);
  return through(algorithm, data, (it) => output(native.digest(algorithm, bytesOf(it)), format));
}

function signed(algorithm, secret, data, format) {
  if (!ALGORITHMS.includes(algorithm)) return unavailable(`k6/crypto ${algorithm}`);
  if (entryOf(secret) !== undefined) return through('hmac', secret, () => '');
  return through('hmac', data, (it) => output(native.hmac(algorithm, bytesOf(secret), bytesOf(it)), format));
}

class Parts {
  constructor(algorithm, secret) {
    Object.assign(this, { algorithm, secret, text: '' });
  }

  update(data) {
    this.text += data;
    return this;
  }

  digest(format) {
    return this.secret === undefined ? digest(this.algorithm, this.text, format)
      : signed(this.algorithm, this.secret, this.text, format);
  }
}

function unavailable(name) {
  note(`${name} is not available`);
  return placeholder({ kind: 'computed', answer: null, name: `${name} in line ${here()?.line ?? 0}` });
}

const crypto = {
  createHash: (algorithm) => new Parts(algorithm),
  createHMAC: (algorithm, secret) => new Parts(algorithm, secret),
  hmac: signed,
  randomBytes: (count) => {
    const bytes = Uint8Array.from({ length: count }, () => Math.trunc(random() * 256));
    return record('random', bytes).buffer;
  },
};
for (const name of ['md4', 'md5', 'sha1', 'sha256', 'sha384', 'sha512', 'sha512_224', 'sha512_256', 'ripemd160']) {
  crypto[name] = (data, format) => digest(name, data, format);
}

// k6/metrics

class Metric {
  constructor(name) {
    this.name = name;
  }

  add() {
    return true;
  }
}

// k6/execution

const exec = {
  vu: {
    get idInTest() { return record('user', execution.user); },
    get idInInstance() { return record('user', execution.user); },
    get iterationInScenario() { return record('iteration', execution.iteration); },
    get iterationInInstance() { return record('iteration', execution.iteration); },
    tags: {}, metrics: { tags: {}, metadata: {} },
  },
  scenario: {
    get name() { return execution.scenario; },
    get iterationInTest() { return record('iteration', execution.total); },
    get iterationInInstance() { return record('iteration', execution.total); },
    executor: 'constant-vus', startTime: 0, progress: 0,
  },
  instance: { iterationsInterrupted: 0, iterationsCompleted: 0, vusActive: 1, vusInitialized: 1, currentTestRunDuration: 0 },
  test: {
    abort: (text) => fail(`stops the test: ${text ?? 'abort()'}`),
    fail: (text) => note(`the script marks the test as failed: ${text ?? 'fail()'}`),
    options: {},
  },
};

/** Gives the options of the script to k6/execution. */
export function setOptions(options) {
  exec.test.options = options;
}

// k6-utils

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

function randomString(length, letters = LETTERS) {
  let text = '';
  for (let index = 0; index < length; index += 1) text += letters[Math.trunc(random() * letters.length)];
  return record('letters', text);
}

function uuidv4() {
  const text = 'xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx'.replace(/[xy]/g, (it) => {
    const digit = Math.trunc(random() * 16);
    return (it === 'x' ? digit : (digit & 3) | 8).toString(16);
  });
  return record('uuid', text);
}

function randomItem(list) {
  if (entryOf(list) !== undefined) return list[0];
  const index = Math.trunc(random() * list.length);
  if (Array.isArray(list)) accessed(list, index);
  return list[index];
}

function parseDuration(text) {
  let total = 0;
  const units = { d: 86400000, h: 3600000, m: 60000, s: 1000, ms: 1 };
  for (const [, value, unit] of String(text).matchAll(/(\d+(?:\.\d+)?)(ms|d|h|m|s)/g)) total += value * units[unit];
  return total;
}

const utils = {
  randomIntBetween: (from, to) => between(Number(from), Number(to)),
  randomItem, randomString, uuidv4, findBetween, parseDuration,
  getCurrentStageIndex: () => 0, tagWithCurrentStageIndex: () => undefined, tagWithCurrentStageProfile: () => undefined,
  normalDistributionStages: (users, seconds, count = 10) => Array.from({ length: count }, () => ({ target: users, duration: `${Math.ceil(seconds / count)}s` })),
  checkHeader: () => true,
};

// httpx

const PARAMS = ['headers', 'tags', 'timeout', 'cookies', 'redirects', 'auth', 'responseType', 'responseCallback', 'compression', 'jar'];

class Httpx {
  constructor(options = {}) {
    this.baseURL = options.baseURL ?? '';
    this.headers = { ...options.headers };
    this.params = options;
  }

  setBaseUrl(url) { this.baseURL = url; }
  addHeader(name, value) { this.headers[name] = value; }
  addHeaders(headers) { Object.assign(this.headers, headers); }
  clearHeader(name) { delete this.headers[name]; }
  addTag() {}
  addTags() {}
  clearTag() {}

  request(method, url, body, params = {}) {
    const target = /^[a-z]+:\/\//i.test(String(url)) ? url : `${this.baseURL}${url}`;
    const { baseURL, ...own } = this.params;
    const headers = { ...this.headers, ...(params ?? {}).headers };
    return http.request(method, target, body, { ...own, ...params, headers });
  }

  async asyncRequest(method, url, body, params) { return this.request(method, url, body, params); }

  batch(list) {
    return list.map((it) => this.request(it.method, it.url, it.body, it.params));
  }
}
class Request {
  constructor(method, url, body, params) {
    Object.assign(this, { method, url, body, params });
  }
}
const httpx = { Httpx, Request };
for (const [name, method] of Object.entries({
  get: 'GET', head: 'HEAD', post: 'POST', put: 'PUT', patch: 'PATCH', delete: 'DELETE', del: 'DELETE', options: 'OPTIONS',
})) {
  Httpx.prototype[name] = function (url, body, params) {
    const hasNoBody = params === undefined && ['GET', 'HEAD'].includes(method) && body !== null && typeof body === 'object'
      && Object.keys(body).every((it) => PARAMS.includes(it));
    return hasNoBody ? this.request(method, url, null, body) : this.request(method, url, body, params);
  };
  const class_name = name[0].toUpperCase() + name.slice(1);
  httpx[class_name] = class extends Request {
    constructor(url, body, params) {
      super(method, url, body, params);
    }
  };
}

// k6chaijs

function numbersWhere(test) {
  return Array.from({ length: 500 }, (_, index) => index + 100).filter(test);
}

const EXPECTATIONS = {
  equal: (value) => (it) => it === Number(value),
  within: (from, to) => (it) => it >= from && it <= to,
  oneOf: (list) => (it) => list.map(Number).includes(it),
  above: (value) => (it) => it > value,
  least: (value) => (it) => it >= value,
  below: (value) => (it) => it < value,
  most: (value) => (it) => it <= value,
};
for (const [name, as] of Object.entries({
  equals: 'equal', eq: 'equal', eql: 'equal', eqls: 'equal', gt: 'above', greaterThan: 'above', gte: 'least', lt: 'below',
  lessThan: 'below', lte: 'most',
})) EXPECTATIONS[name] = EXPECTATIONS[as];

function expect(value) {
  const status = statusOf(value);
  let isNegated = false;
  const chain = new Proxy(() => undefined, {
    get(_, name) {
      if (name === Symbol.toPrimitive) return () => '';
      if (name === 'not') {
        isNegated = !isNegated;
        return chain;
      }
      const expectation = status === undefined ? undefined : EXPECTATIONS[name];
      if (expectation === undefined) return chain;
      return (...list) => {
        const test = expectation(...list);
        expectStatus(status.request, numbersWhere((it) => test(it) !== isNegated));
        return chain;
      };
    },
    apply() {
      k6.used.add('check');
      return chain;
    },
  });
  if (status === undefined) k6.used.add('check');
  return chain;
}

const chai = {
  expect,
  describe: (name, run) => {
    run();
    return true;
  },
  default: { expect, config: {} },
  config: {},
};

// papaparse

function rowsOf(text, delimiter) {
  const rows = [[]];
  let field = '';
  let quoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const it = text[index];
    if (quoted) {
      if (it !== '"') field += it;
      else if (text[index + 1] === '"') { field += '"'; index += 1; } else quoted = false;
    } else if (it === '"' && field === '') quoted = true;
    else if (it === delimiter) { rows[rows.length - 1].push(field); field = ''; }
    else if (it === '\n') { rows[rows.length - 1].push(field.replace(/\r$/, '')); field = ''; rows.push([]); }
    else field += it;
  }
  rows[rows.length - 1].push(field);
  return rows;
}

function typed(text) {
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/.test(text) ? Number(text) : text;
}

const papaparse = {
  parse(text, config = {}) {
    const plain = String(text).replace(/^\uFEFF/, '');
    const candidates = [',', '\t', ';', '|'];
    const line = plain.split('\n')[0];
    const delimiter = config.delimiter || candidates.reduce((best, it) => (line.split(it).length > line.split(best).length ? it : best));
    let rows = rowsOf(plain, delimiter);
    if (config.skipEmptyLines) rows = rows.filter((row) => row.length > 1 || row[0].trim() !== '');
    if (config.dynamicTyping) rows = rows.map((row, index) => (index === 0 && config.header ? row : row.map(typed)));
    if (!config.header) return { data: rows, errors: [], meta: { delimiter } };
    const names = rows.shift() ?? [];
    const data = rows.map((row) => Object.fromEntries(row.map((value, index) => [names[index] ?? '__parsed_extra', value])));
    return { data, errors: [], meta: { delimiter, fields: names } };
  },
};

// Timers run when the script waits for them, without a pause.

let waiting = 0;
let broken = null;

/** Waits until all timers ran. An iteration of k6 ends then. */
export async function settled() {
  while (waiting > 0) await undefined;
  if (broken === null) return;
  const [error] = broken;
  broken = null;
  throw error;
}

const timers = {
  setTimeout: (run, delay = 0, ...list) => {
    const timeline = streams.timers();
    if (timeline !== null) return timeline.after(() => run(...list), delay);
    pass(Number(delay));
    waiting += 1;
    Promise.resolve().then(() => {
      waiting -= 1;
      return run(...list);
    }).catch((error) => { broken ??= [error]; });
    return 1;
  },
  setInterval: (run, every = 0, ...list) => {
    const timeline = streams.timers();
    if (timeline !== null) return timeline.each(() => run(...list), every);
    Promise.resolve().then(() => run(...list));
    return 1;
  },
  clearTimeout: (number) => streams.timers()?.clear(number),
  clearInterval: (number) => streams.timers()?.clear(number),
};

/** A value of a module that cannot be loaded. Each use is noted. */
export function missing(module, name, why) {
  const label = name === 'default' ? module : `${name} of ${module}`;
  const use = (own) => {
    if (stage.name === 'end') return undefined;
    noteAt(here(), `${own} is left out: ${why}`);
    return placeholder({ kind: 'computed', answer: null, name: `${own} in line ${here()?.line ?? 0}` });
  };
  const members = (own) => new Proxy(function () {}, {
    get: (_, key) => {
      if (key === Symbol.toPrimitive) return () => String(use(own));
      if (typeof key === 'symbol' || key === 'then' || key === 'prototype') return undefined;
      return members(`${own}.${key}`);
    },
    apply: () => use(own),
    construct: () => {
      use(own);
      return members(own);
    },
  });
  return members(label);
}

/** All modules by name. */
export const modules = {
  k6: { check: k6.check, group: k6.group, sleep: k6.sleep, fail: k6.fail, randomSeed: k6.randomSeed },
  'k6/http': http,
  'k6/data': { SharedArray },
  'k6/encoding': { b64encode, b64decode },
  'k6/crypto': crypto,
  'k6/metrics': { Trend: Metric, Rate: Metric, Counter: Metric, Gauge: Metric },
  'k6/execution': exec,
  'k6/timers': timers,
  'k6/options': {},
  'k6/net/grpc': grpc,
  'k6/ws': streams.ws,
  'k6/websockets': streams.websockets,
  'k6/x/sse': streams.sse,
  'k6-utils': utils,
  httpx,
  k6chaijs: chai,
  papaparse: { ...papaparse, default: papaparse },
  url: { URL, URLSearchParams },
};
