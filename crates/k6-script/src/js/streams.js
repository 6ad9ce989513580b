// k6/ws, k6/websockets and k6/x/sse: conversations and streams become requests of the recording.

import { here, noteAt } from 'weigh:journal';
import { decisions, entryOf, placeholder } from 'weigh:values';
import { record, Response } from 'weigh:http';
import { Timeline } from 'weigh:timeline';

/** The timers of this iteration, if it has a stream of the class WebSocket. */
let timeline = null;
let sockets = [];
let native = null;

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

/** Runs all timers of streams at the end of an iteration. */
export function settle() {
  if (timeline === null) return;
  const [own, known] = [timeline, sockets];
  own.run(() => known.every((it) => it.isClosed));
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

/** Runs the handlers of events once. Returns whether they end the stream at the first event. */
function heard(socket, handlers, given) {
  const [before, closes, timers] = [decisions(), socket.closedAt, socket.timeline?.timers.length];
  socket.isHearing = true;
  for (const handler of handlers) handler.call(socket.outer ?? socket, given);
  socket.isHearing = false;
  if (socket.timeline?.timers.length !== timers) {
    noteAt(socket.place, 'a timer after an event is left out: a lab plans its messages before');
  }
  if (socket.closedAt === closes) return false;
  socket.closedAt = closes;
  socket.isClosed = closes !== null;
  if (decisions() === before) return true;
  noteAt(socket.place, 'the script ends the stream by a value of an event. The lab does not');
  return false;
}

/** One conversation. */
class Conversation {
  constructor(url, params, own) {
    const given = params === null || params === undefined || entryOf(params) !== undefined ? {} : params;
    Object.assign(this, { url: String(url), place: here(), timeline: own, start: own.now, params: given });
    Object.assign(this, { messages: [], texts: [], problems: [], closedAt: null, isClosed: false, isHearing: false });
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
    if (!ends && this.closedAt === null) this.problems.push('it has no end. Close the WebSocket after a time');
    record({
      method: 'WEBSOCKET', url: this.url.replace(/^ws(s?):\/\//i, 'http$1://'), place: this.place, problems: this.problems,
      headers: headers.filter((it) => it !== named), body: { text: this.texts.join('\uE002') },
      wire: {
        kind: 'websocket', protocol: protocols.length === 0 ? null : protocols.join(', '), ends,
        hold: ends ? null : this.closedAt,
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
  handler(socket);
  for (const open of own.handlers.open) open.call(socket);
  own.timeline.run(() => own.isClosed);
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
export const websockets = { WebSocket, default: { WebSocket } };
export const sse = { open: openStream, default: { open: openStream } };
