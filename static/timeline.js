// The lanes under the video: steps, idle, one lane per judge, and the person's own spans, all on one time axis.

import { Clock } from "./clock.js";
import { clamp, h } from "./dom.js";
import { timecode } from "./format.js";
import { stepState } from "./review.js";

const SNAP_PX = 8;
const DRAG_PX = 4;

export class Timeline {
  /** `on`: seek(at_s), seekStep(index), select(span_id|null), setSpan(span_id|null, start_s, end_s, movedEdge_s), pin(step_index, at_s),
   * editReason(span_id). */
  constructor(on) {
    this.on = on;
    this.head = h("div", { class: "head" });
    this.lanes = h("div", { class: "lanes-inner" });
    this.scroller = h("div", { class: "lanes-scroll" }, this.lanes);
    this.zoom = 1;
    this.root = h("section", { class: "lanes", "aria-label": "timeline" }, this.scroller);
    this.selected = null;
    this.preview = null;
    this.drag = null;
    this.fixing = false;
    this.lanes.addEventListener("pointerdown", (event) => this.pointerDown(event));
    this.lanes.addEventListener("pointermove", (event) => this.pointerMove(event));
    this.lanes.addEventListener("pointerup", (event) => this.pointerUp(event));
    this.lanes.addEventListener("pointercancel", () => this.cancelDrag());
    this.lanes.addEventListener("dblclick", (event) => this.doubleClick(event));
    this.scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  open(detail) {
    this.detail = detail;
    this.clock = new Clock(detail.media ?? {});
    this.duration_s = Math.max(this.clock.duration_s, this.clock.timeOf(this.clock.count - 1), 1e-3);
    this.setZoom(1);
    this.cancelDrag();
  }

  get stepTimes() {
    return this.detail?.alignment?.step_at_s ?? [];
  }

  left(at_s) {
    return `${(100 * clamp(at_s / this.duration_s, 0, 1)).toFixed(4)}%`;
  }

  render(review, { step, pending, at_s }) {
    if (!this.detail) return;
    Object.assign(this, { review, step, pending });
    const spans = review.spans.some((span) => span.span_id === this.selected);
    if (!spans) this.selected = null;
    const focused = this.focusedHandle();
    this.lanes.replaceChildren(
      this.stepsLane(),
      ...judgeLanes(this.detail.judgements).map((judgement) => this.judgeLane(judgement)),
      this.humanLane(at_s),
      this.head,
    );
    if (focused) this.lanes.querySelector(`[data-span="${CSS.escape(focused.span)}"] [data-side="${focused.side}"]`)?.focus();
    this.moveHead(at_s);
  }

  focusedHandle() {
    const handle = this.root.getRootNode().activeElement;
    if (!handle?.dataset?.side || !this.lanes.contains(handle)) return null;
    return { span: handle.closest("[data-span]").dataset.span, side: handle.dataset.side };
  }

  lane(name, title, cls, children) {
    return h("div", { class: `lane ${cls}` }, h("label", { title }, name), h("div", { class: "track" }, children));
  }

  idleParts() {
    return (this.detail.alignment?.idle ?? []).map((span) =>
      h("div", { class: "idle", title: `nothing moves, ${timecode(span.start_s, 1)}–${timecode(span.end_s, 1)}`, style: { left: this.left(span.start_s), width: this.width(span) } }));
  }

  width(span) {
    return `${(100 * clamp((span.end_s - span.start_s) / this.duration_s, 0, 1)).toFixed(4)}%`;
  }

  stepsLane() {
    const weak = this.detail.alignment?.step_weak ?? [];
    const ticks = this.stepTimes.map((at_s, index) => {
      const time = weak[index] ? `about ${timecode(at_s, 1)} (an estimate: the picture shows no change)` : timecode(at_s);
      return h("i", { class: ["tick", index === this.step && "cur", weak[index] && "weak"].filter(Boolean).join(" "), data: { step: index }, title: `step ${index + 1} · ${time}`, style: { left: this.left(this.fixDrag?.index === index ? this.fixDrag.at_s : at_s) } });
    });
    return this.lane("steps", "when each action began", this.fixing ? "step-ticks fixing" : "step-ticks", [...this.idleParts(), ...ticks]);
  }

  judgeLane(judgement) {
    const spans = (judgement.spans ?? []).map((span) => h("div", {
      class: "span judge", data: { seek: span.start_s }, title: `${judgement.judge}: ${span.reason || "deviates"} · ${timecode(span.start_s, 1)}–${timecode(span.end_s, 1)}`,
      style: { left: this.left(span.start_s), width: this.width(span) },
    }, judgement.step_labels?.length ? "" : span.reason || "deviates"));
    const labels = (judgement.step_labels ?? []).filter((item) => this.stepTimes[item.step_index] !== undefined).map((item) => h("i", {
      class: `mark ${item.label === "-" ? "minus" : "plus"}`, data: { step: item.step_index }, title: `step ${item.step_index + 1}: ${item.reason || item.label}`,
      style: { left: this.left(this.stepTimes[item.step_index]) },
    }, item.label === "-" ? "−" : "+"));
    const verdict = judgement.error ? "failed" : judgement.outcome ?? "no outcome";
    return this.lane(judgement.judge, `${judgement.judge}: ${verdict}`, "judge", [...spans, ...labels]);
  }

  humanLane(at_s) {
    const spans = this.review.spans.map((span) => this.humanSpan(this.preview?.span_id === span.span_id ? { ...span, ...this.preview } : span));
    const fresh = this.preview && this.preview.span_id === null ? [h("div", { class: "span human fresh", style: { left: this.left(this.preview.start_s), width: this.width(this.preview) } })] : [];
    const marks = this.stepTimes.flatMap((time_s, index) => {
      const { label, isFirstError } = stepState(this.review, index);
      if (!label) return [];
      const text = { "+": "+", "-": "−", unsure: "?" }[label];
      return [h("i", { class: `mark own ${{ "+": "plus", "-": "minus", unsure: "unsure" }[label]}${isFirstError ? " first" : ""}`, data: { step: index }, title: `step ${index + 1}: your label`, style: { left: this.left(time_s) } }, text)];
    });
    return this.lane("you", "your spans and labels: drag here, or press [ and ]", "human", [...this.pendingPart(at_s), ...spans, ...fresh, ...marks]);
  }

  pendingPart(at_s) {
    if (!this.pending) return [];
    const edge = this.pending.start_s ?? this.pending.end_s;
    const span = { start_s: Math.min(edge, at_s), end_s: Math.max(edge, at_s) };
    return [h("div", { class: `span pending ${this.pending.start_s == null ? "needs-start" : "needs-end"}`, title: "an open span: set its other edge", style: { left: this.left(span.start_s), width: this.width(span) } })];
  }

  humanSpan(span) {
    const selected = span.span_id === this.selected;
    const handle = (side) => h("b", {
      class: `handle ${side}`, tabindex: "0", role: "slider", "aria-label": `${side} of the span`, "aria-valuemin": 0, "aria-valuemax": this.duration_s,
      "aria-valuenow": side === "start" ? span.start_s : span.end_s, "aria-valuetext": timecode(side === "start" ? span.start_s : span.end_s), data: { side },
      on: { keydown: (event) => this.handleKey(event, span, side), focus: () => this.on.select(span.span_id) },
    });
    return h("div", {
      class: `span human num${selected ? " sel" : ""}`, data: { span: span.span_id }, title: `${span.reason || "your span"} · ${timecode(span.start_s)}–${timecode(span.end_s)}`,
      style: { left: this.left(span.start_s), width: this.width(span) },
    }, handle("start"), h("span", { class: "span-text" }, [span.reason, `${timecode(span.start_s, 1)}–${timecode(span.end_s, 1)}`].filter(Boolean).join(" · ")), handle("end"));
  }

  /** Arrows move an edge to the next step's picture, with Alt by one picture; comma and period always by one picture. */
  handleKey(event, span, side) {
    const direction = { ArrowLeft: -1, ",": -1, ArrowRight: 1, ".": 1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    event.stopPropagation();
    const now = side === "start" ? span.start_s : span.end_s;
    const byPicture = event.altKey || event.key === "," || event.key === ".";
    const to = byPicture ? this.clock.timeOf(this.clock.indexAt(now) + direction) : this.neighbourStep(now, direction);
    this.commitEdge(span, side, to);
  }

  neighbourStep(at_s, direction) {
    const edges = [0, ...this.stepTimes, this.clock.timeOf(this.clock.count - 1)];
    const ahead = edges.filter((edge) => (direction > 0 ? edge > at_s + 1e-6 : edge < at_s - 1e-6));
    if (!ahead.length) return at_s;
    return direction > 0 ? Math.min(...ahead) : Math.max(...ahead);
  }

  commitEdge(span, side, to_s) {
    const edges = withEdge(span, side, to_s);
    if (edges.end_s > edges.start_s && (edges.start_s !== span.start_s || edges.end_s !== span.end_s)) this.on.setSpan(span.span_id, edges.start_s, edges.end_s, to_s);
  }

  moveHead(at_s) {
    if (!this.detail) return;
    const share = clamp(at_s / this.duration_s, 0, 1);
    this.head.style.left = `calc(var(--label-px) + (100% - var(--label-px) - var(--pad-px)) * ${share.toFixed(6)})`;
    if (this.pending) this.lanes.querySelector(".span.pending")?.replaceWith(...this.pendingPart(at_s));
    if (this.zoom > 1 && !this.drag) this.follow(share);
  }

  follow(share) {
    const { scrollLeft, clientWidth, scrollWidth } = this.scroller;
    const x = share * scrollWidth;
    if (x < scrollLeft + 140 || x > scrollLeft + clientWidth - 40) this.scroller.scrollLeft = x - clientWidth / 2;
  }

  setZoom(zoom, anchorX = null) {
    const before = this.zoom;
    this.zoom = clamp(zoom, 1, 40);
    this.lanes.style.width = `${100 * this.zoom}%`;
    if (anchorX !== null) this.scroller.scrollLeft = (this.scroller.scrollLeft + anchorX) * (this.zoom / before) - anchorX;
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.setZoom(this.zoom * Math.exp(-event.deltaY / 300), event.clientX - this.scroller.getBoundingClientRect().left);
  }

  // ---- pointer

  timeAt(clientX) {
    const track = this.lanes.querySelector(".track").getBoundingClientRect();
    return clamp((clientX - track.left) / track.width, 0, 1) * this.duration_s;
  }

  /** The time of the picture under the pointer; a step within a few px wins unless Alt is held. */
  edgeAt(event) {
    const raw = this.timeAt(event.clientX);
    if (!event.altKey) {
      const track = this.lanes.querySelector(".track").getBoundingClientRect();
      const reach_s = (SNAP_PX / track.width) * this.duration_s;
      const near = this.stepTimes.filter((time_s) => Math.abs(time_s - raw) <= reach_s);
      if (near.length) return near.reduce((a, b) => (Math.abs(a - raw) <= Math.abs(b - raw) ? a : b));
    }
    return this.clock.snap(raw);
  }

  pointerDown(event) {
    if (event.button !== 0 || !this.detail || event.target.closest("label")) return;
    const target = event.target;
    const spanElement = target.closest("[data-span]");
    const span = spanElement && this.review.spans.find((item) => item.span_id === spanElement.dataset.span);
    const side = target.closest("[data-side]")?.dataset.side;
    const stepMark = target.closest("[data-step]");
    const base = { x: event.clientX, moved: false, pointerId: event.pointerId };
    if (span && side) this.drag = { ...base, kind: "edge", span, side };
    else if (span) this.drag = { ...base, kind: "span", span, grab_s: this.timeAt(event.clientX) };
    else if (stepMark && this.fixing && stepMark.classList.contains("tick")) this.drag = { ...base, kind: "pin", index: Number(stepMark.dataset.step) };
    else if (stepMark) this.drag = { ...base, kind: "step", index: Number(stepMark.dataset.step) };
    else if (target.closest("[data-seek]")) this.drag = { ...base, kind: "jump", at_s: Number(target.closest("[data-seek]").dataset.seek) };
    else if (target.closest(".lane.human")) this.drag = { ...base, kind: "create", from_s: this.edgeAt(event) };
    else this.drag = { ...base, kind: "scrub" };
    if (span) this.on.select(span.span_id);
    else if (this.drag.kind === "create") this.on.select(null);
    if (this.drag.kind === "scrub") this.on.seek(this.timeAt(event.clientX));
    this.lanes.setPointerCapture(event.pointerId);
    event.preventDefault();
  }

  pointerMove(event) {
    const { drag } = this;
    if (!drag) return;
    if (!drag.moved && Math.abs(event.clientX - drag.x) < DRAG_PX) return;
    drag.moved = true;
    if (drag.kind === "scrub") this.on.seek(this.timeAt(event.clientX));
    else if (drag.kind === "edge") this.showPreview({ span_id: drag.span.span_id, ...withEdge(drag.span, drag.side, this.edgeAt(event)) }, this.edgeAt(event));
    else if (drag.kind === "span") this.showPreview({ span_id: drag.span.span_id, ...this.movedSpan(drag, event) }, this.movedSpan(drag, event).start_s);
    else if (drag.kind === "create") this.showPreview({ span_id: null, ...ordered(drag.from_s, this.edgeAt(event)) }, this.edgeAt(event));
    else if (drag.kind === "pin") this.showPin({ index: drag.index, at_s: this.between(drag.index, this.clock.snap(this.timeAt(event.clientX))) });
  }

  /** A time for a step that leaves its neighbours where they are. */
  between(index, at_s) {
    return clamp(at_s, this.stepTimes[index - 1] ?? 0, this.stepTimes[index + 1] ?? this.duration_s);
  }

  movedSpan({ span, grab_s }, event) {
    const last = this.clock.timeOf(this.clock.count - 1);
    const length = span.end_s - span.start_s;
    const start = clamp(span.start_s + this.timeAt(event.clientX) - grab_s, 0, Math.max(0, last - length));
    return { start_s: this.clock.snap(start), end_s: this.clock.snap(start + length) };
  }

  showPreview(preview, seek_s) {
    this.preview = preview;
    this.on.seek(seek_s);
    this.render(this.review, { step: this.step, pending: this.pending, at_s: seek_s });
  }

  showPin(pin) {
    this.fixDrag = pin;
    this.on.seek(pin.at_s);
    this.render(this.review, { step: this.step, pending: this.pending, at_s: pin.at_s });
  }

  pointerUp(event) {
    const { drag, preview, fixDrag } = this;
    if (!drag) return;
    this.cancelDrag();
    if (drag.kind === "step" || (drag.kind === "pin" && !drag.moved)) this.on.seekStep(drag.index);
    else if (drag.kind === "pin") this.on.pin(drag.index, fixDrag.at_s);
    else if (drag.kind === "jump") this.on.seek(drag.at_s);
    else if (drag.kind === "create" && !drag.moved) this.on.seek(this.timeAt(event.clientX));
    else if (drag.kind === "span" && !drag.moved) this.on.seek(this.timeAt(event.clientX));
    else if (preview && preview.end_s > preview.start_s) {
      const moved = drag.kind === "edge" ? preview[drag.side === "start" ? "start_s" : "end_s"] : drag.kind === "create" ? preview.end_s : preview.start_s;
      this.on.setSpan(preview.span_id, preview.start_s, preview.end_s, moved);
    }
  }

  cancelDrag() {
    Object.assign(this, { drag: null, preview: null, fixDrag: null });
  }

  doubleClick(event) {
    const span = event.target.closest("[data-span]");
    if (span) this.on.editReason(span.dataset.span);
  }
}

const ordered = (a, b) => ({ start_s: Math.min(a, b), end_s: Math.max(a, b) });

/** A span with one edge moved; an edge pulled past the other becomes the other. */
function withEdge(span, side, at_s) {
  return side === "start" ? ordered(at_s, span.end_s) : ordered(span.start_s, at_s);
}

/** The newest judgement of each judge, in a stable order. */
export function judgeLanes(judgements) {
  const newest = new Map();
  for (const judgement of judgements ?? []) {
    const known = newest.get(judgement.judge);
    if (!known || known.created_utc < judgement.created_utc) newest.set(judgement.judge, judgement);
  }
  return [...newest.values()].sort((a, b) => (a.judge < b.judge ? -1 : 1));
}
