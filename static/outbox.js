// Ops on their way to the server. Each waits in localStorage under its own key until it is acknowledged, so a reload, a
// killed browser or a server that is away loses nothing; the server answers a repeated op_id with its first answer, so
// sending twice is harmless, also from two windows.

import { ApiError, call, runPath } from "./api.js";
import { keep, keptUnder } from "./store.js";

const PREFIX = "reviewer.op.";
const RETRY_MS = [250, 500, 1000, 2000, 4000];
// The app's own refusals. Anything else may come from what stands between, and is tried again.
const FINAL = [400, 404, 413, 415, 422];

let counter = 0;

/** A new unique op id that sorts in the order of making. */
export function newOpId() {
  counter += 1;
  const random = Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${Date.now().toString(36).padStart(9, "0")}-${counter.toString(36).padStart(4, "0")}-${random}`;
}

export class Outbox {
  /** `hooks`: `baseRev(trajectoryId, reviewer)`, `onAnswer(entry, answer)`, `onConflict(entry, body)` → whether to send it again,
   * `onDropped(entry)`, `onRefused(entry, error)`, `onNotKept()`, `onState()`. */
  constructor(hooks) {
    this.hooks = hooks;
    this.entries = keptUnder(PREFIX).sort((a, b) => (a.op.op_id < b.op.op_id ? -1 : 1));
    this.sending = null;
    this.failures = 0;
    this.timer = null;
    addEventListener("pagehide", () => this.flushLast());
    addEventListener("online", () => this.pump());
  }

  /** Ops not acknowledged yet, oldest first, of one trajectory or of all. */
  pending(trajectoryId) {
    return trajectoryId ? this.entries.filter((entry) => entry.trajectory_id === trajectoryId) : this.entries;
  }

  get isOffline() {
    return this.failures > 0;
  }

  /** Keep the op, then send it. The entry is stored before this returns, where the browser lets us. */
  push(trajectoryId, reviewer, op) {
    const entry = { trajectory_id: trajectoryId, reviewer, op };
    this.entries.push(entry);
    if (!keep(PREFIX + op.op_id, entry)) this.hooks.onNotKept();
    this.hooks.onState();
    this.pump();
    return entry;
  }

  drop(entry) {
    keep(PREFIX + entry.op.op_id, null);
    this.entries = this.entries.filter((other) => other !== entry);
    this.hooks.onState();
  }

  async pump() {
    if (this.sending || !this.entries.length) return;
    clearTimeout(this.timer);
    const entry = this.entries[0];
    this.sending = entry;
    try {
      const answer = await this.send(entry);
      this.failures = 0;
      this.drop(entry);
      this.hooks.onAnswer(entry, answer);
    } catch (error) {
      await this.failed(entry, error);
    } finally {
      this.sending = null;
    }
    if (this.entries.length && !this.failures) this.pump();
  }

  async send(entry, keepalive = false) {
    const base = (await this.hooks.baseRev(entry.trajectory_id, entry.reviewer)) ?? entry.op.base_rev;
    return call(`${runPath(entry.trajectory_id)}/ops`, { method: "POST", reviewer: entry.reviewer, body: { ...entry.op, base_rev: base }, keepalive });
  }

  async failed(entry, error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 409) {
      this.failures = 0;
      if (await this.hooks.onConflict(entry, error.body)) return;
      this.drop(entry);
      this.hooks.onDropped(entry);
      return;
    }
    if (!FINAL.includes(error.status) || !error.body?.detail) {
      const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)];
      this.failures += 1;
      this.timer = setTimeout(() => this.pump(), wait);
      this.hooks.onState();
      return;
    }
    this.failures = 0;
    this.drop(entry);
    this.hooks.onRefused(entry, error);
  }

  /** The page goes away: one last try for what is waiting. What does not make it stays stored. */
  flushLast() {
    const waiting = this.entries.slice(0, 8);
    if (waiting.length) this.send(waiting[0], true).catch(() => {});
  }
}
