// k6/http: every call becomes a request of the recording, and its answer consists of placeholders.

import { here, note, fail } from 'weigh:journal';
import { entryOf, matches, placeholder, whole } from 'weigh:values';
import { isTrial, statusFor } from 'weigh:status';
import { pass } from 'weigh:draws';

const MOST = 5000;

/** All requests of the recording. */
export const requests = [];
/** The part of the script that runs: init, setup, load or teardown. */
export const stage = { name: 'init', iteration: 0, of: '' };
/** The order of calls at one place in this iteration. */
let turns = new Map();
let callback = null;
let groups = [];
/** Milliseconds of pauses since the last request of this iteration. */
let paused = 0;

/** Begins an iteration of a function. */
export function enter(name, of, iteration) {
  stage.name = name;
  stage.of = of;
  stage.iteration = iteration;
  turns = new Map();
  groups = [];
  paused = 0;
  jar.clear();
}

/** Adds a pause before the next request. */
export function pausing(milliseconds) {
  if (milliseconds > 0) paused += milliseconds;
}

/** The pauses since the last request, in milliseconds. */
export function rest() {
  const whole = Math.round(paused * 1000) / 1000;
  paused = 0;
  return whole;
}

/** Runs a function within a group. */
export function within(name, run) {
  groups.push(String(name));
  try {
    return run();
  } finally {
    groups.pop();
  }
}

function header(answer, label, name) {
  return placeholder({ kind: 'header', answer, header: name, name: `${label}.headers['${name}']` });
}

/** An answer. Its values are placeholders that remember their origin. */
export class Response {
  constructor(request) {
    const own = { request, answer: request.answer, label: `the answer to ${request.method} in line ${request.place?.line ?? 0}` };
    Object.defineProperty(this, 'own', { value: own });
    this.url = request.url;
    this.request = { method: request.method, url: request.url, headers: Object.fromEntries(request.headers), body: request.body?.text ?? '' };
    this.error = '';
    this.error_code = 0;
    this.proto = 'HTTP/1.1';
    this.remote_ip = '127.0.0.1';
    this.remote_port = 80;
    this.timings = { blocked: 0, connecting: 0, tls_handshaking: 0, sending: 0, waiting: 1, receiving: 0, duration: 1 };
    this.ocsp = {};
    this.body = placeholder({ kind: 'body', answer: own.answer, name: `the body of ${own.label}` });
    this.headers = new Proxy({}, {
      get: (_, name) => (typeof name === 'symbol' ? undefined : header(own.answer, own.label, name)),
      has: () => true,
    });
    this.cookies = new Proxy({}, {
      get: (_, name) => (typeof name === 'symbol' ? undefined : [cookie(own, name)]),
      has: () => true,
    });
  }

  get status() {
    return statusFor(this.own.request);
  }

  get status_text() {
    return `${statusFor(this.own.request)} OK`;
  }

  json(selector) {
    const { answer, label } = this.own;
    if (selector === undefined) return placeholder({ kind: 'json', answer, path: [], name: `json() of ${label}` });
    const parts = String(selector).split('.');
    const name = `json('${selector}') of ${label}`;
    if (!parts.every((part) => /^[A-Za-z0-9_-]+$/.test(part))) return placeholder({ kind: 'computed', answer, name });
    return placeholder({ kind: 'json', answer, path: parts, name });
  }

  html() {
    return placeholder({ kind: 'computed', answer: this.own.answer, isHtml: true, name: `html() of ${this.own.label}` });
  }

  submitForm() {
    return refused('submitForm', 'the form is part of an answer');
  }

  clickLink() {
    return refused('clickLink', 'the link is part of an answer');
  }
}

function cookie(own, name) {
  const value = placeholder({
    kind: 'header', answer: own.answer, header: 'Set-Cookie', pattern: `${escaped(name)}=([^;]*)`,
    name: `cookies.${name} of ${own.label}`,
  });
  return { name, value, domain: '', path: '/', httpOnly: false, secure: false, maxAge: 0, expires: 0 };
}

/** A text as a regular expression. */
export function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}

class CookieJar {
  constructor() {
    this.known = [];
  }

  set(url, name, value) {
    this.known.push({ host: host(url), name, value });
  }

  cookiesForURL(url) {
    const found = this.known.filter((it) => it.host === host(url));
    const last = requests[requests.length - 1];
    return new Proxy({}, {
      get: (_, name) => {
        if (typeof name === 'symbol') return undefined;
        const set = found.filter((it) => it.name === name).map((it) => it.value);
        if (set.length > 0 || last === undefined) return set;
        return [cookie({ answer: last.answer, label: `the answer before line ${here()?.line}` }, name).value];
      },
    });
  }

  delete(url, name) {
    this.known = this.known.filter((it) => it.host !== host(url) || it.name !== name);
  }

  clear() {
    this.known = [];
  }
}

const jar = new CookieJar();

function host(url) {
  return /^[a-z]+:\/\/([^/?#]*)/i.exec(String(url))?.[1] ?? '';
}

function headersOf(params, url) {
  const headers = [];
  const given = params.headers ?? {};
  if (entryOf(given) !== undefined) fail(`takes headers from ${entryOf(given).description.name}`);
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined && value !== null) headers.push([name, String(value)]);
  }
  const cookies = [...(params.jar ?? jar).known].filter((it) => it.host === host(url)).map((it) => [it.name, it.value]);
  for (const [name, value] of Object.entries(params.cookies ?? {})) {
    cookies.push([name, typeof value === 'object' && entryOf(value) === undefined ? value.value : value]);
  }
  if (cookies.length > 0) headers.push(['Cookie', cookies.map(([name, value]) => `${name}=${value}`).join('; ')]);
  return headers;
}

function has(headers, name) {
  return headers.some(([known]) => known.toLowerCase() === name);
}

/** A value in the form of a query (application/x-www-form-urlencoded). */
function inForm(value) {
  const text = encodeURIComponent(String(value));
  return text.replace(/[!'()*]/g, (it) => `%${it.charCodeAt(0).toString(16).toUpperCase()}`).replaceAll('%20', '+');
}

/** Bytes as base64, for the recording. */
function binary(bytes) {
  return { base64: native.base64([...bytes]) };
}

let native = null;

/** Receives the functions of the host. */
export function connect(given) {
  native = given;
}

function bodyOf(body, headers, problems) {
  if (body === null || body === undefined) return null;
  if (whole(body) !== undefined || typeof body === 'string' || body instanceof String) return { text: String(body) };
  if (body instanceof ArrayBuffer) return binary(new Uint8Array(body));
  if (ArrayBuffer.isView(body)) return binary(new Uint8Array(body.buffer, body.byteOffset, body.byteLength));
  if (typeof body !== 'object') return { text: String(body) };
  if (Object.values(body).some((it) => it instanceof FileData)) return multipart(body, headers);
  if (!has(headers, 'content-type')) headers.push(['Content-Type', 'application/x-www-form-urlencoded']);
  const pairs = [];
  for (const name of Object.keys(body).sort()) {
    const values = Array.isArray(body[name]) ? body[name] : [body[name]];
    for (const value of values) {
      if (value !== null && typeof value === 'object' && entryOf(value) === undefined) {
        problems.push(`its form has an object as \`${name}\``);
      }
      pairs.push(`${inForm(name)}=${inForm(value)}`);
    }
  }
  return { text: pairs.join('&') };
}

/** A file for a body in parts. */
export class FileData {
  constructor(data, filename, type) {
    this.data = data;
    this.filename = filename ?? String(Date.now());
    this.content_type = type ?? 'application/octet-stream';
  }
}

const BOUNDARY = 'weighbridge-boundary-5f2d9c71';

function multipart(body, headers) {
  const parts = [];
  for (const [name, value] of Object.entries(body)) {
    parts.push(`--${BOUNDARY}\r\n`);
    if (value instanceof FileData) {
      parts.push(`Content-Disposition: form-data; name="${name}"; filename="${value.filename}"\r\n`);
      parts.push(`Content-Type: ${value.content_type}\r\n\r\n`, value.data, '\r\n');
    } else {
      parts.push(`Content-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`);
    }
  }
  parts.push(`--${BOUNDARY}--\r\n`);
  headers.push(['Content-Type', `multipart/form-data; boundary=${BOUNDARY}`]);
  if (parts.every((part) => typeof part === 'string' || entryOf(part) !== undefined)) return { text: parts.join('') };
  return { base64: native.joined(parts.map((part) => (part instanceof ArrayBuffer ? [...new Uint8Array(part)] : String(part)))) };
}

/** Records a call that no lab can send. */
export function refused(what, why) {
  note(`${what} is left out: ${why}`);
  return placeholder({ kind: 'computed', answer: null, name: `${what} in line ${here()?.line ?? 0}` });
}

function problemsOf(params) {
  const problems = [];
  if (params.auth === 'digest' || params.auth === 'ntlm') {
    problems.push(`its authentication (${params.auth}) depends on an answer`);
  }
  return problems;
}

function send(method, target, body, params = {}) {
  const given = params === null || entryOf(params) !== undefined ? {} : params;
  const url = typeof target === 'object' && target !== null && typeof target.url === 'string' ? target.url : String(target);
  const headers = headersOf(given, url);
  const problems = problemsOf(given);
  const notes = [];
  if (given.compression) notes.push(`the script compresses its body (${given.compression}), the lab does not`);
  const request = record({
    method: String(method).toUpperCase(), url, place: here(), headers, body: bodyOf(body, headers, problems), notes, problems,
    accepted: given.responseCallback === undefined ? callback : given.responseCallback?.ranges ?? 'any',
  });
  return new Response(request);
}

/** Adds a request of any kind to the recording. */
export function record(own) {
  if (isTrial()) fail('sends a request within a check');
  if (requests.length >= MOST) fail(`sends more than ${MOST} requests`);
  const { place } = own;
  const site = `${place?.file}:${place?.line}:${place?.column}`;
  const turn = turns.get(site) ?? 0;
  turns.set(site, turn + 1);
  const request = {
    answer: requests.length, stage: stage.name, of: stage.of, iteration: stage.iteration, turn, groups: [...groups],
    assumed: null, expected: null, accepted: null, notes: [], pause: rest(), ...own,
  };
  requests.push(request);
  pass(1);
  return request;
}

const get = (url, params) => send('GET', url, null, params);
const head = (url, params) => send('HEAD', url, null, params);
const post = (url, body, params) => send('POST', url, body, params);
const put = (url, body, params) => send('PUT', url, body, params);
const patch = (url, body, params) => send('PATCH', url, body, params);
const del = (url, body, params) => send('DELETE', url, body, params);
const options = (url, body, params) => send('OPTIONS', url, body, params);
const request = (method, url, body, params) => send(method, url, body, params);
const asyncRequest = async (method, url, body, params) => send(method, url, body, params);

function one(item) {
  if (typeof item === 'string' || entryOf(item) !== undefined) return send('GET', item, null, {});
  if (Array.isArray(item)) return send(item[0], item[1], item[2], item[3] ?? {});
  if (typeof item.url === 'string' && item.method === undefined) return send('GET', item, item.body, item.params ?? {});
  return send(item.method, item.url, item.body, item.params ?? {});
}

function batch(list) {
  if (Array.isArray(list)) return list.map(one);
  return Object.fromEntries(Object.entries(list).map(([name, item]) => [name, one(item)]));
}

function url(strings, ...values) {
  const text = strings.reduce((before, part, index) => `${before}${values[index - 1]}${part}`);
  return { url: text, name: text, toString: () => text };
}

function expectedStatuses(...list) {
  return { ranges: list.map((it) => (typeof it === 'number' ? [it, it] : [it.min, it.max])) };
}

function setResponseCallback(given) {
  callback = given === null ? 'any' : given.ranges;
}

const file = (data, name, type) => new FileData(data, name, type);
const cookieJar = () => jar;

export const module = {
  get, head, post, put, patch, del, options, request, asyncRequest, batch, url, file, expectedStatuses,
  setResponseCallback, cookieJar, CookieJar, FileData, Response,
  TLS_1_0: 'tls1.0', TLS_1_1: 'tls1.1', TLS_1_2: 'tls1.2', TLS_1_3: 'tls1.3',
};

/** The part of a text between two others. */
export function findBetween(content, left, right, repeat = false) {
  const entry = whole(content);
  if (entry !== undefined) {
    const found = matches(entry, new RegExp(`${escaped(left)}(.*?)${escaped(right)}`));
    return repeat ? [found[1]] : found[1];
  }
  const parts = String(content).split(left).slice(1).map((part) => part.split(right)[0]);
  return repeat ? parts : parts[0] ?? null;
}
