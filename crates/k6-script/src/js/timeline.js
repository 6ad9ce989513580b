// The time of a script with streams: its timers run in their order, without waiting.

import { note } from 'weigh:journal';

const MOST = 1000;

/** The timers of an iteration. */
export class Timeline {
  constructor() {
    this.now = 0;
    this.numbers = 0;
    this.timers = [];
    /** The timer that runs, if it repeats. */
    this.repeating = null;
  }

  /** Runs a function after a time, in milliseconds. */
  after(run, delay, every = null) {
    this.numbers += 1;
    const at = this.now + Math.max(0, Number(delay) || 0);
    this.timers.push({ number: this.numbers, at, run, every, start: this.now, sent: [] });
    return this.numbers;
  }

  /** Runs a function again and again. */
  each(run, every) {
    return this.after(run, every, Math.max(1, Number(every) || 0));
  }

  /** Ends a timer. Its messages know how often they were sent. */
  clear(number) {
    for (const timer of [...this.timers, ...this.ended]) {
      if (timer.number !== number) continue;
      const count = Math.floor((this.now - timer.start) / (timer.every ?? 1));
      for (const message of timer.sent) message.count = Math.max(1, count);
    }
    this.timers = this.timers.filter((it) => it.number !== number);
  }

  /** Timers that ran and repeat. */
  ended = [];

  /** Runs all timers, until `isOver` is true. A repeating timer runs twice, which shows if its messages differ. */
  run(isOver) {
    for (let count = 0; this.timers.length > 0 && !isOver(); count += 1) {
      if (count === MOST) {
        note(`the script sets more than ${MOST} timers. The others are left out`);
        this.timers = [];
        return;
      }
      const next = this.timers.reduce((first, it) => (it.at < first.at ? it : first));
      this.timers = this.timers.filter((it) => it !== next);
      this.now = Math.max(this.now, next.at);
      if (next.every === null) {
        next.run();
        continue;
      }
      this.ended.push(next);
      this.repeating = next;
      try {
        next.run();
        next.isAgain = true;
        next.place = 0;
        if (!isOver()) next.run();
      } finally {
        this.repeating = null;
      }
    }
  }
}
