// The status of an answer: a number that is not known. A check shows which numbers it accepts.

/** The status that every answer has while a check runs, or null. */
let trial = null;
/** Requests whose status the running check reads. */
let read = new Set();

export class Status {
  constructor(request) {
    this.request = request;
  }

  /** The number that the script receives. */
  number() {
    if (trial !== null) {
      read.add(this.request);
      return trial;
    }
    return this.request.assumed ?? 200;
  }

  /** True if the status equals a value. The first comparison with a successful status decides it. */
  equals(other, compared) {
    const wanted = Number(other);
    if (trial === null && this.request.assumed === null && wanted >= 200 && wanted < 300) this.request.assumed = wanted;
    return compared(this.number(), other);
  }

  toJSON() {
    return this.number();
  }

  toString() {
    return String(this.number());
  }

  [Symbol.toPrimitive](hint) {
    return hint === 'string' ? this.toString() : this.number();
  }
}

/** The value, if it is a status. */
export function statusOf(value) {
  return value instanceof Status ? value : undefined;
}

/** The status of a request: an object, or a plain number while a check runs. */
export function statusFor(request) {
  const status = new Status(request);
  return trial === null ? status : status.number();
}

/** The number that a check tries as the status of a request. 0 outside of a check. */
export function readStatus(request) {
  if (trial === null) return 0;
  read.add(request);
  return trial;
}

/** The requests whose status `run` reads, with the statuses for which `run` is true, unless they are known. */
export function tried(run, known) {
  const outer = [trial, read];
  read = new Set();
  const passes = (number) => {
    trial = number;
    try {
      return Boolean(run());
    } catch {
      return false;
    }
  };
  try {
    passes(200);
    if (read.size === 0) return { requests: [], numbers: [] };
    if (known !== undefined) return { requests: [...read], numbers: known };
    const numbers = [];
    for (let number = 100; number < 600; number += 1) if (passes(number)) numbers.push(number);
    return { requests: [...read], numbers };
  } finally {
    [trial, read] = outer;
  }
}

/** True while a check runs. */
export function isTrial() {
  return trial !== null;
}

/** Restricts the expected statuses of a request to those that a check accepts. */
export function expectStatus(request, numbers) {
  if (numbers.length === 0 || numbers.length === 500) return;
  const known = request.expected;
  const both = known === null ? numbers : known.filter((number) => numbers.includes(number));
  request.expected = both.length === 0 ? numbers : both;
  if (request.assumed === null || !request.expected.includes(request.assumed)) request.assumed = request.expected[0];
}

/** Lets lists find a status by its number. */
export function install() {
  for (const name of ['includes', 'indexOf']) {
    const plain = Array.prototype[name];
    Array.prototype[name] = function (value, ...rest) {
      return plain.call(this, statusOf(value)?.number() ?? value, ...rest);
    };
  }
}
