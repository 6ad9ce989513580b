// k6/ws, k6/websockets and k6/x/sse: conversations and streams become requests of the recording.

import { here, noteAt } from 'weigh:journal';
import { decisions, entryOf, placeholder } from 'weigh:values';
import { record, Response } from 'weigh:http';
import { Timeline } from 'weigh:timeline';

/** The timers of this iteration, if it has a stream of the class WebSocket. */
let timeline = null;
let sockets = [];
/** The timers of the handlers that run now. */
let running = null;
let native = null;

/** Most events that a handler receives here. */
const EVENTS_MAX = 200;

/** Receives the functions of the host. */
export function connect(given) {
  native = given;
}

/** Begins an iteration. */
export function enter() {
  timeline = null;
  sockets = [];
}

/** The timers of this iteration, or null without a stream. */
export function timers() {
  return timeline;
}

/** Lets the time of a stream pass. False without a stream. */
export function paused(milliseconds) {
  const line = running ?? timeline;
  if (line === null) return false;
  if (milliseconds > 0) line.now += milliseconds;
  return true;
}

/** Runs a function whose pauses belong to these timers. */
function within(line, run) {
  const outer = running;
  running = line;
  try {
    return run();
  } finally {
    running = outer;
  }
}

/** Runs all timers of streams at the end of an iteration. */
export function settle() {
  if (timeline === null) return;
  const [own, known] = [timeline, sockets];
  within(own, () => own.run(() => known.every((it) => it.isClosed)));
  for (const socket of known) socket.finish();
  enter();
}

function event(label, data = {}) {
  const members = { type: label, timestamp: 0, ...data };
  return members;
}

/** The value of an event of a stream. It has no place in an answer that a lab captures. */
function ofStream(name, place) {
  return placeholder({ kind: 'computed', answer: null, name: `${name} of the stream in line ${place?.line ?? 0}` });
}

/** Runs the handlers of events. Returns the number of the event at which they end the stream, or null. */
function heard(socket, handlers, given) {
  const [before, closed, timers] = [decisions(), socket.closedAt, socket.timeline?.timers.length];
  // An end by a timer is later than an end by an event.
  Object.assign(socket, { isHearing: true, isClosed: false, closedAt: null });
  let events = 0;
  while (handlers.length > 0 && events < EVENTS_MAX && socket.closedAt === null && decisions() === before) {
    events += 1;
    for (const handler of handlers) handler.call(socket.outer ?? socket, given);
  }
  const ends = socket.closedAt !== null;
  Object.assign(socket, { isHearing: false, isClosed: closed !== null, closedAt: closed });
  if (socket.timeline?.timers.length !== timers) {
    noteAt(socket.place, 'a timer after an event is left out: a lab plans its messages before');
  }
  if (!ends) return null;
  if (decisions() === before) return events;
  noteAt(socket.place, 'the script ends the stream by a value of an event. The lab does not');
  return null;
}

/** One conversation. */
class Conversation {
  constructor(url, params, own) {
    const given = params === null || params === undefined || entryOf(params) !== undefined ? {} : params;
    Object.assign(this, { url: String(url), place: here(), timeline: own, start: own.now, params: given });
    Object.assign(this, { messages: [], texts: [], problems: [] });
    Object.assign(this, { closedAt: null, isClosed: false, isOpen: false, isHearing: false });
    this.handlers = { open: [], message: [], other: [] };
    this.protocols = [];
  }

  on(name, handler) {
    const key = { open: 'open', message: 'message', binaryMessage: 'message' }[name] ?? 'other';
    this.handlers[key].push(handler);
  }

  send(data, isBinary = false) {
    if (this.isHearing) {
      noteAt(here(), 'a message after an event is left out: a lab plans its messages before');
      return;
    }
    if (this.isClosed) return;
    const repeating = this.timeline.repeating;
    const text = isBinary ? native.base64([...new Uint8Array(data.buffer ?? data)]) : String(data);
    if (repeating?.isAgain) {
      const known = repeating.sent[repeating.place];
      repeating.place += 1;
      if (known !== undefined && this.texts[known.index] !== text) {
        noteAt(here(), 'the script changes a message from send to send. Here it is fixed');
      }
      return;
    }
    const after = this.timeline.now - this.start;
    const message = { index: this.texts.length, after, every: repeating?.every ?? null, count: null, isBinary };
    repeating?.sent.push(message);
    this.messages.push(message);
    this.texts.push(text);
  }

  close() {
    if (this.isClosed) return;
    this.isClosed = true;
    this.closedAt = this.timeline.now - this.start;
  }

  /** Records the conversation. */
  finish() {
    const ends = heard(this, this.handlers.message, this.given?.() ?? ofStream('a message', this.place));
    const headers = Object.entries(this.params.headers ?? {}).map(([name, value]) => [name, String(value)]);
    const named = headers.find(([name]) => name.toLowerCase() === 'sec-websocket-protocol');
    const protocols = [...this.protocols, ...(named === undefined ? [] : [named[1]])];
    if (ends === null && this.closedAt === null) this.problems.push('it has no end. Close the WebSocket after a time');
    if (!this.isOpen && this.handlers.open.length > 0) this.problems.push('the script closes it before it is open');
    record({
      method: 'WEBSOCKET', url: this.url.replace(/^ws(s?):\/\//i, 'http$1://'), place: this.place, problems: this.problems,
      headers: headers.filter((it) => it !== named), body: { text: this.texts.join('\uE002') },
      wire: {
        kind: 'websocket', protocol: protocols.length === 0 ? null : protocols.join(', '), ends,
        hold: ends === null ? this.closedAt : null,
        messages: this.messages.map(({ after, every, count, isBinary }) => ({ after, every, count, isBinary })),
      },
    });
  }
}

/** A socket of k6/ws. */
class Socket {
  constructor(own) {
    Object.defineProperty(this, 'own', { value: own });
    own.outer = this;
  }

  on(name, handler) { this.own.on(name, handler); }
  send(data) { this.own.send(data); }
  sendBinary(data) { this.own.send(data, true); }
  close() { this.own.close(); }
  ping() { noteAt(here(), 'a ping is left out: the lab sends messages only'); }
  setTimeout(run, delay) { return this.own.timeline.after(() => run.call(this), delay); }
  setInterval(run, every) { return this.own.timeline.each(() => run.call(this), every); }
}

function connectSocket(url, params, run) {
  const [given, handler] = typeof params === 'function' && entryOf(params) === undefined ? [{}, params] : [params, run];
  const own = new Conversation(url, given, new Timeline());
  const socket = new Socket(own);
  within(own.timeline, () => {
    handler(socket);
    own.isOpen = true;
    for (const open of own.handlers.open) open.call(socket);
    own.timeline.run(() => own.isClosed);
  });
  own.finish();
  return { status: 101, url: own.url, body: '', error: '', headers: {}, timings: { duration: 1 } };
}

/** The class of the browsers, as in k6/websockets. */
class WebSocket {
  constructor(url, protocols, params) {
    timeline ??= new Timeline();
    const own = new Conversation(url, params, timeline);
    own.protocols = [protocols ?? []].flat().map(String);
    own.outer = this;
    own.given = () => event('message', { data: ofStream('a message', own.place), origin: own.url });
    Object.defineProperty(this, 'own', { value: own });
    Object.assign(this, { url: own.url, binaryType: 'blob', bufferedAmount: 0, protocol: '', extensions: '' });
    sockets.push(own);
    timeline.after(() => {
      if (own.isClosed) return;
      own.isOpen = true;
      for (const handler of own.handlers.open) handler.call(this, event('open'));
    }, 0);
  }

  get readyState() { return this.own.isClosed ? 3 : 1; }
  addEventListener(name, handler) { this.own.on(name, handler); }
  send(data) { this.own.send(data, data instanceof ArrayBuffer || ArrayBuffer.isView(data)); }
  close() { this.own.close(); }
  ping() { noteAt(here(), 'a ping is left out: the lab sends messages only'); }
}
for (const name of ['open', 'message', 'close', 'error', 'ping', 'pong']) {
  Object.defineProperty(WebSocket.prototype, `on${name}`, {
    set(handler) { if (typeof handler === 'function') this.own.on(name, handler); },
    get() { return null; },
  });
}
Object.assign(WebSocket, { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 });

// k6/x/sse

function openStream(url, params, run) {
  const [given, handler] = typeof params === 'function' && entryOf(params) === undefined ? [{}, params] : [params ?? {}, run];
  const place = here();
  const handlers = { event: [], open: [] };
  const stream = { place, closedAt: null, isClosed: false };
  stream.outer = {
    on: (name, listener) => (handlers[name] ?? []).push(listener),
    close: () => { stream.closedAt = 0; },
  };
  handler?.(stream.outer);
  for (const open of handlers.open) open.call(stream.outer);
  const members = ['id', 'name', 'data', 'comment'].map((name) => [name, ofStream(`event.${name}`, place)]);
  const ends = heard(stream, handlers.event, Object.fromEntries(members));
  const headers = Object.entries(given.headers ?? {}).map(([name, value]) => [name, String(value)]);
  const body = given.body === undefined || given.body === null ? null : { text: String(given.body) };
  const request = record({
    method: String(given.method ?? 'GET').toUpperCase(), url: String(url), place, headers, body, problems: [],
    wire: { kind: 'sse', ends },
  });
  return new Response(request);
}

export const ws = { connect: connectSocket, default: { connect: connectSocket } };
/** The class can be called without `new`. */
const Callable = new Proxy(WebSocket, { apply: (own, _, list) => new own(...list) });
export const websockets = { WebSocket: Callable, default: { WebSocket: Callable } };
export const sse = { open: openStream, default: { open: openStream } };
