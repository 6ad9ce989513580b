// k6/net/grpc: calls become requests of the recording, with their `.proto` files.

import { here, note, noteAt } from 'weigh:journal';
import { entryOf, placeholder } from 'weigh:values';
import { record } from 'weigh:http';
import { isTrial, readStatus } from 'weigh:status';

const STATUSES = [
  'OK', 'Canceled', 'Unknown', 'InvalidArgument', 'DeadlineExceeded', 'NotFound', 'AlreadyExists', 'PermissionDenied',
  'ResourceExhausted', 'FailedPrecondition', 'Aborted', 'OutOfRange', 'Unimplemented', 'Internal', 'Unavailable', 'DataLoss',
  'Unauthenticated',
];
/** A check tries numbers from here for the statuses of calls. */
const FIRST = 100;
const FILES_MAX = 500;

let native = null;
/** Texts of `.proto` files by the names in their imports, and descriptors as base64. */
export const protos = {};
export const descriptors = {};

/** Receives the functions of the host. */
export function connect(given) {
  native = given;
}

/** A name without steps to other folders. */
function plain(name) {
  const parts = [];
  for (const part of String(name).split('/')) if (part !== '' && part !== '.' && part !== '..') parts.push(part);
  return parts.join('/');
}

function folderOf(name) {
  return name.includes('/') ? name.slice(0, name.lastIndexOf('/') + 1) : '';
}

/** Reads a file with all files that it imports. */
function addFile(name, folders, base) {
  const own = plain(name);
  if (own in protos || own.startsWith('google/protobuf/')) return;
  if (Object.keys(protos).length >= FILES_MAX) throw new Error(`more than ${FILES_MAX} files of gRPC`);
  let failure = null;
  for (const folder of [...folders, '']) {
    const path = folder === '' || String(name).startsWith('/') ? String(name) : `${folder}/${name}`;
    try {
      const text = native.open(path, false, base);
      protos[own] = text;
      const plainText = text.replace(/\/\*[^]*?\*\//g, '').replace(/\/\/.*/g, '');
      for (const [, imported] of plainText.matchAll(/^\s*import\s+(?:public\s+|weak\s+)?["']([^"']+)["']\s*;/gm)) {
        addFile(imported, [...folders, folderOf(path)], base);
      }
      return;
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}

class Client {
  constructor() {
    Object.assign(this, { files: [], set: null, address: null, isPlain: false, reflects: false });
  }

  load(folders, ...names) {
    const base = here()?.file ?? '';
    const own = (Array.isArray(folders) ? folders : []).map((it) => String(it).replace(/\/$/, ''));
    for (const name of names) {
      addFile(name, own, base);
      this.files.push(plain(name));
    }
    return [];
  }

  loadProtoset(name) {
    const own = plain(name);
    descriptors[own] = native.base64([...new Uint8Array(native.open(String(name), true, here()?.file ?? ''))]);
    this.set = own;
    return [];
  }

  connect(address, params = {}) {
    Object.assign(this, { address: String(address), isPlain: params?.plaintext === true, reflects: Boolean(params?.reflect) });
    return true;
  }

  close() {}

  invoke(method, message, params = {}) {
    return call(this, method, [message ?? {}], params, false);
  }

  async asyncInvoke(method, message, params = {}) {
    return this.invoke(method, message, params);
  }

  healthCheck() {
    note('healthCheck is left out: write a call of grpc.health.v1.Health/Check into the lab');
    return { status: 0 };
  }
}

/** Metadata as headers. */
function metadataOf(params) {
  return Object.entries(params?.metadata ?? params?.headers ?? {}).map(([name, value]) => [name, String(value)]);
}

/** A time of k6: milliseconds, or a text such as `3s`. */
function milliseconds(time) {
  if (time === undefined || time === null || entryOf(time) !== undefined) return null;
  if (typeof time === 'number') return time;
  let total = 0;
  const units = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
  for (const [, value, unit] of String(time).matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g)) total += value * units[unit];
  return total > 0 ? total : null;
}

function call(client, method, messages, params, isStream) {
  const problems = [];
  if (client.address === null) problems.push('its client is not connected');
  if (client.files.length === 0 && client.set === null) {
    const why = client.reflects ? 'the server describes it by reflection' : 'its client loads no `.proto` file';
    problems.push(`${why}. Load a \`.proto\` file with \`client.load\``);
  }
  const path = String(method).replace(/^\//, '');
  const request = record({
    method: 'GRPC', url: `${client.isPlain ? 'http' : 'https'}://${client.address}/${path}`, place: here(), problems,
    headers: metadataOf(params), body: { text: messages.map((it) => JSON.stringify(it)).join('\uE002') },
    wire: {
      kind: 'grpc', method: path, files: [...client.files], descriptors: client.set, isStream,
      deadline: milliseconds(params?.timeout),
    },
  });
  return answerOf(request);
}

/** The answer to a call. A lab captures no value of its message. */
function answerOf(request) {
  const name = `the answer to a call of gRPC in line ${request.place?.line ?? 0}`;
  const message = placeholder({ kind: 'computed', answer: null, name });
  return {
    message, headers: {}, trailers: {}, error: null,
    get status() {
      const status = readStatus(request);
      return (isTrial() ? status : request.assumed ?? FIRST) - FIRST;
    },
  };
}

/** A stream of messages, which leave together. */
class Stream {
  constructor(client, method, params = {}) {
    Object.assign(this, { client, method, params, messages: [], place: here(), isSent: false });
    streams.push(this);
  }

  on(name) {
    if (name === 'data') this.hears = true;
  }

  write(message) {
    if (!this.isSent) this.messages.push(message ?? {});
  }

  end() {
    if (this.isSent) return;
    this.isSent = true;
    call(this.client, this.method, this.messages, this.params, true);
  }
}

let streams = [];

/** Begins an iteration. */
export function enter() {
  streams = [];
}

/** Records streams without an end at the end of an iteration. */
export function settle() {
  for (const stream of streams) {
    if (stream.hears) noteAt(stream.place, 'what the script does with messages of the stream is left out: the lab counts them only');
    stream.end();
  }
  enter();
}

const own = { Client, Stream };
STATUSES.forEach((name, number) => { own[`Status${name}`] = number; });

export const module = { ...own, default: own };
