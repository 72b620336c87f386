// The events of a run that the page holds: pages of the log, fetched when they are scrolled to and dropped again when they
// are far away, so that a run of any length takes the same memory.
import type { Event, Index } from "./api";
import { get, page, runPath } from "./api";

const EVERY = 200;
const HELD = 30;

/// Rows that a list can show.
export interface Rows {
  readonly count: number;
  at(n: number): Event | undefined;
  /// Fetches the rows of a range that are missing.
  need(first: number, last: number): void;
}

/// All events of a run.
export class Log implements Rows {
  count = 0;
  last = 0;
  starts: number[] = [];
  loaded = false;
  private pages = new Map<number, Event[]>();
  private fetching = new Set<number>();
  private calls = new Map<string, Event>();

  constructor(
    readonly run: string,
    private changed: () => void,
  ) {}

  async open(): Promise<void> {
    const index = await get<Index>(runPath(this.run, `/index?every=${EVERY}`));
    this.count = index.count;
    this.last = index.last;
    this.starts = index.starts;
    this.loaded = true;
    this.changed();
  }

  at(n: number): Event | undefined {
    return this.pages.get(Math.floor(n / EVERY))?.[n % EVERY];
  }

  need(first: number, last: number) {
    for (let p = Math.floor(first / EVERY); p <= Math.floor(Math.max(first, last) / EVERY); p++) {
      const held = this.pages.get(p);
      const wanted = Math.min(EVERY, this.count - p * EVERY);
      if (held && held.length >= wanted) {
        // The most recently used is last.
        this.pages.delete(p);
        this.pages.set(p, held);
      } else if (!this.fetching.has(p) && this.starts[p] !== undefined) {
        void this.fetch(p);
      }
    }
    while (this.pages.size > HELD) this.pages.delete(this.pages.keys().next().value!);
  }

  private async fetch(p: number) {
    this.fetching.add(p);
    try {
      const [events] = await page(runPath(this.run, `/events?from=${this.starts[p]}&limit=${EVERY}`));
      // Events may have arrived while the page was under way.
      const newer = (this.pages.get(p) ?? []).filter((event) => event.seq > (events.at(-1)?.seq ?? 0));
      const whole = [...events, ...newer].slice(0, EVERY);
      whole.forEach((event) => this.note(event));
      this.pages.set(p, whole);
      this.changed();
    } catch {
      // It is asked for again when it is scrolled to.
    } finally {
      this.fetching.delete(p);
    }
  }

  /// Adds an event of the stream; false if it is known.
  append(event: Event): boolean {
    if (event.seq <= this.last) return false;
    this.last = event.seq;
    const p = Math.floor(this.count / EVERY);
    const held = this.pages.get(p);
    if (this.count % EVERY === 0) {
      this.starts[p] = event.seq;
      this.pages.set(p, [event]);
    } else if (held && held.length === this.count % EVERY) {
      held.push(event);
    }
    this.note(event);
    this.count++;
    return true;
  }

  private note(event: Event) {
    if (event.type !== "tool_call") return;
    this.calls.set(event.call_id, event);
    if (this.calls.size > 5000) this.calls.delete(this.calls.keys().next().value!);
  }

  /// The call that a result belongs to, if it is held.
  call(id: string): Event | undefined {
    return this.calls.get(id);
  }

  /// Row of an event.
  async find(seq: number): Promise<number> {
    let p = this.starts.findIndex((start, n) => start <= seq && (this.starts[n + 1] ?? Infinity) > seq);
    if (p < 0) p = 0;
    if (!this.pages.get(p)) await this.fetch(p);
    const rows = this.pages.get(p) ?? [];
    const at = rows.findIndex((event) => event.seq >= seq);
    return p * EVERY + (at < 0 ? Math.max(0, rows.length - 1) : at);
  }
}

/// The events of a run that match a filter, fetched page by page.
export class Matches implements Rows {
  private rows: Event[] = [];
  private next: number | undefined = 0;
  private busy = false;

  constructor(
    readonly run: string,
    readonly query: string,
    private changed: () => void,
  ) {
    void this.more();
  }

  get count() {
    return this.rows.length;
  }

  get complete() {
    return this.next === undefined;
  }

  at(n: number) {
    return this.rows[n];
  }

  need(_: number, last: number) {
    if (last >= this.rows.length - 20) void this.more();
  }

  /// Adds what came since the last page.
  refresh() {
    if (this.next === undefined && !this.busy) {
      this.next = (this.rows.at(-1)?.seq ?? -1) + 1;
      void this.more();
    }
  }

  private async more() {
    if (this.busy || this.next === undefined) return;
    this.busy = true;
    try {
      const [events, next] = await page(runPath(this.run, `/events?limit=200&from=${this.next}&${this.query}`));
      this.rows.push(...events);
      this.next = next;
      this.changed();
    } catch {
      this.next = undefined;
    } finally {
      this.busy = false;
    }
    if (this.next !== undefined && this.rows.length < 40) void this.more();
  }
}
