// The notes of the recording, and the place in the script that runs now.

/** Notes with their places, without repetition. */
export const notes = [];
const known = new Set();
/** Above zero while a check runs: its comparisons decide nothing. */
let quiet = 0;

/** The first place of the script on the stack, or null. */
export function here() {
  for (const line of String(new Error().stack).split('\n')) {
    const found = /\((.*):(\d+):(\d+)\)$/.exec(line) ?? /at (.*):(\d+):(\d+)$/.exec(line);
    if (found !== null && found[1].startsWith('/')) {
      return { file: found[1], line: Number(found[2]), column: Number(found[3]) };
    }
  }
  return null;
}

/** Adds a note about the place that runs now. */
export function note(text) {
  if (quiet > 0) return;
  noteAt(here(), text);
}

/** Adds a note about a place. */
export function noteAt(place, text) {
  const key = `${place?.file}:${place?.line}:${text}`;
  if (known.has(key)) return;
  known.add(key);
  notes.push({ place, text });
}

/** Runs a function of a check without notes. */
export function quietly(run) {
  quiet += 1;
  try {
    return run();
  } finally {
    quiet -= 1;
  }
}

/** The end of an iteration that cannot continue, because it depends on a run. */
export class Unknown extends Error {
  constructor(text) {
    super(text);
    this.name = 'Unknown';
  }
}

/** Ends the iteration. */
export function fail(text) {
  throw new Unknown(`the script ${text}`);
}
