// One open trajectory: its data, the review as the person sees it (server's state plus what is still on its way), and undo.

import { newOpId } from "./outbox.js";
import { applyOp, changesOf, emptyReview } from "./review.js";

export class Session extends EventTarget {
  constructor(detail, outbox, reviewer) {
    super();
    this.detail = detail;
    this.outbox = outbox;
    this.reviewer = reviewer;
    this.base = detail.review ?? emptyReview(detail.trajectory.id, reviewer);
    this.changes = new Map();
    this.undoable = [];
    for (const entry of this.ownPending()) if (entry.op.type !== "undo") this.undoable.push(entry.op.op_id);
    this.recompute();
  }

  get id() {
    return this.detail.trajectory.id;
  }

  get known() {
    return { judgements: this.detail.judgements, changesOf: (opId) => this.changes.get(opId) };
  }

  ownPending() {
    return this.outbox.pending(this.id).filter((entry) => entry.reviewer === this.reviewer);
  }

  /** The judgements on screen right now: they are recorded with every op. */
  get shown() {
    return this.detail.judgements.map((judgement) => judgement.id);
  }

  recompute() {
    let review = this.base;
    for (const { op } of this.ownPending()) {
      const changes = changesOf(op, review, this.known);
      if (!this.changes.has(op.op_id)) this.changes.set(op.op_id, changes);
      review = applyOp(review, op, this.known);
    }
    this.review = review;
    this.dispatchEvent(new Event("change"));
  }

  /** Make an op, show its effect at once, and send it. Returns the op, or null if it would change nothing. */
  push(fields) {
    if (this.review.status === "submitted" && !["reopen", "undo"].includes(fields.type)) this.push({ type: "reopen" });
    const op = { op_id: newOpId(), base_rev: this.base.rev + this.ownPending().length, shown: this.shown, ...fields };
    const changes = changesOf(op, this.review, this.known);
    if (!changes.length && op.type !== "undo") return null;
    this.changes.set(op.op_id, changes);
    if (op.type !== "undo") this.undoable.push(op.op_id);
    this.outbox.push(this.id, this.reviewer, op);
    this.recompute();
    return op;
  }

  /** Take back the newest op that is not taken back yet. Returns its changes, or null when there is none. */
  undo() {
    const opId = this.undoable.pop();
    if (!opId) return null;
    this.push({ type: "undo", undoes: opId });
    return this.changes.get(opId) ?? [];
  }

  /** What can be undone after a reload: own ops from the history, newest first, without those already undone. */
  adoptHistory(ops) {
    const own = ops.filter((op) => op.reviewer === this.reviewer).sort((a, b) => a.rev - b.rev);
    const stack = [];
    for (const op of own) {
      this.changes.set(op.op_id, op.changes);
      if (op.type !== "undo") stack.push(op.op_id);
      else if (stack.includes(op.undoes)) stack.splice(stack.indexOf(op.undoes), 1);
    }
    const queued = this.ownPending().map((entry) => entry.op);
    const undone = new Set(queued.filter((op) => op.type === "undo").map((op) => op.undoes));
    const seen = new Set(stack);
    this.undoable = [...stack, ...this.undoable.filter((opId) => !seen.has(opId))].filter((opId) => !undone.has(opId));
  }

  /** The server's newer state of this review. */
  accept(review) {
    if (review.rev < this.base.rev) return;
    this.base = review;
    this.recompute();
  }

  /** An op was refused for good: forget it and show the true state. */
  forget(opId) {
    this.undoable = this.undoable.filter((other) => other !== opId);
    this.recompute();
  }
}
