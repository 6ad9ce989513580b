// The classes URL and URLSearchParams of k6's library of scripts. Texts can contain placeholders.

import { through } from 'weigh:values';

const WITH_SCHEME = /^([a-zA-Z][a-zA-Z0-9+.-]*:)\/\/(?:([^/?#@]*)@)?([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/;
// A server that exists only during a run.
const OF_PLACEHOLDER = /^()()(\uE000[a-z]*\d+\uE001)([^?#]*)(\?[^#]*)?(#.*)?$/;
const PORTS = { 'http:': '80', 'https:': '443' };

function encoded(text) {
  return encodeURIComponent(String(text)).replaceAll('%20', '+').replaceAll('~', '%7E')
    .replaceAll('!', '%21').replaceAll("'", '%27').replaceAll('(', '%28').replaceAll(')', '%29');
}

function decoded(text) {
  const spaced = text.replaceAll('+', ' ');
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}

function pairsOf(given) {
  if (given === undefined || given === null) return [];
  if (given instanceof URLSearchParams) return [...given.entries()];
  if (typeof given === 'string') {
    const parts = given.replace(/^\?/, '').split('&').filter((part) => part !== '');
    return parts.map((part) => {
      const at = part.indexOf('=');
      return at < 0 ? [decoded(part), ''] : [decoded(part.slice(0, at)), decoded(part.slice(at + 1))];
    });
  }
  const entries = typeof given[Symbol.iterator] === 'function' ? [...given] : Object.entries(given);
  return entries.map(([name, value]) => [String(name), String(value)]);
}

export class URLSearchParams {
  #pairs;

  constructor(given) {
    this.#pairs = pairsOf(given);
  }

  append(name, value) { this.#pairs.push([String(name), String(value)]); }
  delete(name) { this.#pairs = this.#pairs.filter(([own]) => own !== String(name)); }
  get(name) { return this.#pairs.find(([own]) => own === String(name))?.[1] ?? null; }
  getAll(name) { return this.#pairs.filter(([own]) => own === String(name)).map(([, value]) => value); }
  has(name) { return this.#pairs.some(([own]) => own === String(name)); }
  sort() { this.#pairs.sort(([one], [other]) => (one < other ? -1 : Number(one > other))); }
  forEach(run) { for (const [name, value] of this.#pairs) run(value, name, this); }

  set(name, value) {
    const first = this.#pairs.find(([own]) => own === String(name));
    if (first === undefined) {
      this.append(name, value);
      return;
    }
    first[1] = String(value);
    this.#pairs = this.#pairs.filter((pair) => pair === first || pair[0] !== first[0]);
  }

  entries() { return this.#pairs.map((pair) => [...pair])[Symbol.iterator](); }
  keys() { return this.#pairs.map(([name]) => name)[Symbol.iterator](); }
  values() { return this.#pairs.map(([, value]) => value)[Symbol.iterator](); }
  [Symbol.iterator]() { return this.entries(); }
  toString() { return this.#pairs.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join('&'); }
}

/** A path without the segments `.` and `..`. */
function plain(path) {
  const segments = [];
  const parts = path.split('/').slice(1);
  parts.forEach((part, index) => {
    const isLast = index === parts.length - 1;
    if (part === '..') segments.pop();
    else if (part !== '.') segments.push(part);
    if (isLast && (part === '.' || part === '..')) segments.push('');
  });
  return `/${segments.join('/')}`.replaceAll(' ', '%20');
}

/** The text of a URL that is relative to another. */
function resolved(text, base) {
  if (text.startsWith('//')) return `${base.protocol}${text}`;
  if (text.startsWith('/')) return `${base.server}${text}`;
  if (text === '' || text.startsWith('?')) return `${base.server}${base.pathname}${text === '' ? base.search : text}`;
  if (text.startsWith('#')) return `${base.server}${base.pathname}${base.search}${text}`;
  return `${base.server}${base.pathname.slice(0, base.pathname.lastIndexOf('/') + 1)}${text}`;
}

export class URL {
  #scheme;
  #user;
  #host;

  constructor(given, base) {
    let text = String(given).trim();
    let found = WITH_SCHEME.exec(text) ?? OF_PLACEHOLDER.exec(text);
    if (found === null && base !== undefined) {
      text = resolved(text, base instanceof URL ? base : new URL(base));
      found = WITH_SCHEME.exec(text) ?? OF_PLACEHOLDER.exec(text);
    }
    if (found === null) throw new TypeError(`Invalid URL: ${text}`);
    const [, scheme, user, host, path, search, hash] = found;
    this.#scheme = scheme.toLowerCase();
    this.#user = user ?? '';
    const port = PORTS[this.#scheme];
    this.#host = port !== undefined && host.endsWith(`:${port}`) ? host.slice(0, -port.length - 1) : host;
    this.pathname = plain(path === '' ? '/' : path);
    this.hash = hash === undefined || hash === '#' ? '' : hash;
    this.searchParams = new URLSearchParams(search);
    // A query stays as it is written until the script changes a parameter.
    this.#written = search === undefined || search === '?' ? '' : search;
    this.#before = this.searchParams.toString();
  }

  #written;
  #before;

  /** A part of a server that exists only during a run is not known. */
  #part(name, value) { return this.#scheme === '' ? through(`the ${name} of`, this.#host, () => '') : value; }

  get server() { return this.#scheme === '' ? this.#host : `${this.#scheme}//${this.#user === '' ? '' : `${this.#user}@`}${this.#host}`; }
  get protocol() { return this.#part('protocol', this.#scheme); }
  set protocol(value) { this.#scheme = `${String(value).replace(/:$/, '')}:`; }
  get host() { return this.#part('host', this.#host); }
  set host(value) { this.#host = String(value); }
  get hostname() { return this.#part('host name', this.#host.replace(/:\d+$/, '')); }
  set hostname(value) { this.#host = this.#host.replace(/^[^:]*/, () => String(value)); }
  get port() { return this.#part('port', /:(\d+)$/.exec(this.#host)?.[1] ?? ''); }
  set port(value) { this.#host = `${this.#host.replace(/:\d+$/, '')}${value === '' ? '' : `:${value}`}`; }
  get origin() { return this.#scheme === '' ? this.#host : `${this.#scheme}//${this.#host}`; }
  get username() { return this.#user.split(':')[0]; }
  get password() { return this.#user.split(':')[1] ?? ''; }

  get search() {
    const now = this.searchParams.toString();
    if (now === this.#before) return this.#written;
    return now === '' ? '' : `?${now}`;
  }

  set search(value) {
    const text = String(value);
    this.searchParams = new URLSearchParams(text);
    this.#before = this.searchParams.toString();
    this.#written = text === '' || text.startsWith('?') ? text : `?${text}`;
  }

  get href() { return `${this.server}${this.pathname}${this.search}${this.hash}`; }
  toString() { return this.href; }
  toJSON() { return this.href; }
}
