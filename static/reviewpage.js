// The review screen: wires the stage, the lanes, the step list and the marks of one open trajectory.

import { ApiError, call, reviewerName, runPath } from "./api.js";
import { Blink, placement } from "./blink.js";
import { askText, chipClass, Drawer, historyList, rawReplies } from "./dialogs.js";
import { h } from "./dom.js";
import { OUTCOMES, plural, timecode } from "./format.js";
import { badge } from "./keys.js";
import { drawStep, stepCaption } from "./overlay.js";
import { Session } from "./session.js";
import { Stage } from "./stage.js";
import { judgeLabelsByStep, StepList } from "./steplist.js";
import { keep, kept } from "./store.js";
import { judgeLanes, Timeline } from "./timeline.js";

const KEY_SNAP_S = 0.25;
const REPLAY_DELAY_MS = 450;
const MARK_LEAD_S = 0.5;
const MARK_STAY_S = 1.2;

export class ReviewPage {
  /** `app`: {outbox, toasts, openNext(direction), onChange(session), onPlace(), host, cached(id), remember(id, detail)}. */
  constructor(app) {
    this.app = app;
    this.stage = new Stage();
    this.timeline = new Timeline({
      seek: (at_s) => { this.stage.pause(); this.stage.seekTo(at_s); },
      seekStep: (index) => this.goToStep(index),
      select: (spanId) => this.selectSpan(spanId),
      setSpan: (spanId, start_s, end_s, edge_s) => this.setSpan(spanId, start_s, end_s, edge_s),
      pin: (index, at_s) => this.correctTimes({ pins: [{ step_index: index, at_s }], shift_s: 0 }),
      editReason: (spanId) => this.editSpanReason(spanId),
    });
    this.steps = new StepList({
      seekStep: (index) => this.goToStep(index),
      label: (index, label) => this.mark({ type: "label_step", step_index: index, label }),
    });
    this.blink = new Blink(this.stage.screen);
    this.drawer = new Drawer();
    this.session = null;
    this.step = null;
    this.stickyStep = null;
    this.build();
    this.stage.addEventListener("frame", () => this.frameChanged());
    this.stage.addEventListener("state", () => this.showControls());
    this.stage.addEventListener("fit", () => this.drawOverlay());
    this.stage.addEventListener("first", () => this.firstPicture());
  }

  build() {
    const button = (props, ...children) => h("button", { class: "quiet", ...props }, ...children);
    this.play = button({ class: "play", "aria-label": "play or pause", on: { click: () => this.stage.toggle() } }, "▶");
    this.now = h("span", { class: "t" });
    this.total = h("span", {});
    this.frame = h("span", { class: "num frame-no", title: "picture number in the playable file; stored times are seconds" });
    this.speed = button({ title: "speed: < slower, > faster", on: { click: () => this.stage.changeSpeed(1) } });
    this.idle = button({ on: { click: () => this.stage.toggleSkipIdle() } });
    this.fixBar = h("div", { class: "fix-bar", hidden: true });
    const controls = h("div", { class: "ctl" }, this.play, h("span", { class: "num" }, this.now, " / ", this.total), this.frame, this.speed, this.idle,
      h("span", { class: "grow" }),
      button({ class: "quiet fix", on: { click: () => this.toggleFixing() } }, "step times ", badge("fixTimes")),
      button({ on: { click: () => this.toggleBlink() } }, "before / after ", badge("blink")),
      button({ on: { click: () => this.toggleRaw() } }, "raw reply ", badge("raw")),
      button({ on: { click: () => this.toggleHistory() } }, "history ", badge("history")));
    this.problems = h("details", { class: "problems", hidden: true });
    const outcomeButton = (value, id) => h("button", { class: `outcome ${value}`, data: { value }, on: { click: () => this.setOutcome(this.session?.review.outcome === value ? null : value) } }, OUTCOMES[value], " ", badge(id));
    this.outcomes = ["correct", "incorrect", "unsure"].map((value, index) => outcomeButton(value, ["correct", "incorrect", "cantTell"][index]));
    this.verdicts = h("div", { class: "verdicts" });
    this.note = h("textarea", { class: "note", rows: "2", maxlength: "20000", "aria-label": "note on the run", placeholder: "What happened, in a sentence", on: { change: () => this.keepNote(), keydown: (event) => this.noteKey(event), input: () => this.draftNote() } });
    this.submit = h("button", { class: "primary", on: { click: () => this.submitAndNext() } }, "Submit and next ↵");
    this.hints = h("div", { class: "hints" }, [["play", "play"], [["nextStep", "prevStep"], "step"], [["prevFrame", "nextFrame"], "frame"], [["spanIn", "spanOut"], "span"], [["labelPlus", "labelMinus"], "label"], ["firstError", "first error"], ["accept", "accept judge"], ["undo", "undo"], ["help", "all keys"]]
      .map(([ids, text]) => h("span", {}, [].concat(ids).map((id) => badge(id)), ` ${text}`)));
    this.root = h("div", { class: "review" },
      h("main", { class: "work" }, this.stage.root, controls, this.fixBar, this.timeline.root),
      h("aside", { class: "side" }, h("section", { class: "out" }, h("div", { class: "out-head" }, h("b", {}, "Outcome"), this.verdicts), h("div", { class: "seg" }, this.outcomes)),
        this.problems, this.steps.root,
        h("section", { class: "out note-box" }, h("label", { class: "dim" }, "Note ", badge("note")), this.note)),
      h("footer", {}, this.hints, h("span", { class: "grow" }), this.submit),
      this.drawer.root);
  }

  // ---- opening

  /** Open a trajectory. `place`: {step (0-based), at_s}. Resolves once its data is on screen. */
  async open(id, place = {}) {
    this.openId = id;
    const reviewer = reviewerName();
    const detail = await this.app.detail(id, reviewer);
    if (this.openId !== id) return;
    this.leave();
    withPixels(detail);
    this.session = new Session(detail, this.app.outbox, reviewer);
    this.session.addEventListener("change", () => this.render());
    this.timeline.open(detail);
    this.stickyStep = place.step ?? null;
    this.stage.open(detail.media, detail.alignment?.idle, this.timeOf(place));
    this.steps.open(detail, judgeLabelsByStep(judgeLanes(detail.judgements)));
    this.pending = kept(pendingKey(this.session));
    this.note.value = this.draft ?? this.session.review.notes.run ?? "";
    this.showVerdicts();
    this.showProblems();
    this.total.textContent = timecode(this.timeline.duration_s);
    this.step = undefined;
    this.frameChanged();
    this.render();
    this.showControls();
    this.app.onOpen(this.session);
    this.keepNote();
  }

  /** Seconds of the video that a place {step, at_s} means. */
  timeOf({ step, at_s }) {
    return at_s ?? this.session.detail.alignment?.step_at_s?.[step] ?? 0;
  }

  /** Go to a place in the open trajectory. */
  goTo(place) {
    this.stage.pause();
    this.stickyStep = place.step ?? null;
    this.stage.seekToMoment(this.timeOf(place));
  }

  leave() {
    if (this.session) this.keepNote();
    this.blink.hide();
    this.drawer.close();
    this.setFixing(false);
    this.timeline.selected = null;
    this.session = null;
  }

  /** The first picture is there: now there is time for what is needed only later. */
  firstPicture() {
    this.app.onFirstPicture();
    this.historyRead();
  }

  /** Resolves once the session knows what can be undone from before it was opened; asked for once. */
  historyRead() {
    const { session } = this;
    if (session) session.historyRead ??= readHistory(session);
    return session?.historyRead;
  }

  // ---- showing

  render() {
    if (!this.session) return;
    const { review } = this.session;
    this.timeline.render(review, { step: this.step, pending: this.pending, at_s: this.stage.at_s });
    this.steps.render(review, this.step);
    for (const button of this.outcomes) {
      button.classList.toggle("on", button.dataset.value === review.outcome);
      button.setAttribute("aria-pressed", button.dataset.value === review.outcome);
    }
    if (this.draft === null) this.note.value = review.notes.run ?? "";
    this.submit.textContent = review.status === "submitted" ? "Submitted · next ↵" : "Submit and next ↵";
    this.root.classList.toggle("submitted", review.status === "submitted");
    this.app.onChange(this.session);
  }

  showVerdicts() {
    const { detail } = this.session;
    const data = detail.trajectory.outcome ?? (detail.trajectory.score !== null && detail.trajectory.score !== undefined ? `score ${Number(detail.trajectory.score).toFixed(2)}` : null);
    this.verdicts.replaceChildren(
      ...judgeLanes(detail.judgements).map((judgement) => h("span", { class: `chip ${chipClass(judgement.outcome)}`, title: judgement.error ?? judgement.judge }, `${judgement.judge} ${judgement.error ? "failed" : judgement.outcome ?? "abstains"}${judgement.probability != null ? ` ${judgement.probability.toFixed(2)}` : ""}`)),
      data && h("span", { class: `chip outline ${chipClass(data)}`, title: "what came with the data" }, `evaluator ${data}`) || "");
  }

  showProblems() {
    const { problems } = this.session.detail.trajectory;
    this.problems.hidden = !problems.length;
    this.problems.replaceChildren(h("summary", {}, plural(problems.length, "problem"), " in the source"),
      h("ul", {}, problems.map((problem) => h("li", {}, h("b", {}, `${problem.file}${problem.line ? `:${problem.line}` : ""}`), ` ${problem.message}`))));
  }

  showControls() {
    this.play.textContent = this.stage.isPlaying ? "❚❚" : "▶";
    this.speed.textContent = `${this.stage.speed}×`;
    this.idle.replaceChildren("skip idle ", this.stage.skipIdle ? "on" : "off");
    this.idle.title = "leave out stretches where nothing moves (s)";
    this.root.classList.toggle("playing", this.stage.isPlaying);
    this.root.classList.toggle("looping", Boolean(this.stage.loop));
  }

  frameChanged() {
    if (!this.session) return;
    const at_s = this.stage.at_s;
    this.now.textContent = timecode(at_s);
    this.frame.textContent = `frame ${this.stage.at}`;
    this.frame.title = `picture ${this.stage.at + 1} of ${this.stage.clock.count}, shown from ${timecode(this.stage.picture_s)}`;
    const { dataset } = this.root;
    dataset.frame = this.stage.at;
    dataset.settled = this.stage.isSettled;
    dataset.atS = at_s;
    this.timeline.moveHead(at_s);
    const step = this.currentStep(at_s);
    if (step !== this.step) {
      this.step = step;
      this.timeline.render(this.session.review, { step, pending: this.pending, at_s });
      this.steps.setCurrent(step);
      if (this.blink.isOn && step !== null) this.blink.show(this.session.detail, step);
      this.app.onPlace();
    }
    this.drawOverlay();
  }

  /** The step whose stretch of the video holds `at_s`; a step that was chosen stays while the playhead is on its picture. */
  currentStep(at_s) {
    const times = this.timeline.stepTimes;
    if (this.stickyStep !== null && (this.fixing || this.stage.clock.indexAt(times[this.stickyStep] ?? -1) === this.stage.at)) return this.stickyStep;
    this.stickyStep = null;
    let current = null;
    for (let index = 0; index < times.length && times[index] <= at_s + 1e-4; index += 1) current = index;
    if (current === null && times.length && this.stage.clock.indexAt(times[0]) === this.stage.at) current = 0;
    return current;
  }

  drawOverlay() {
    if (!this.session) return;
    const { screen } = this.stage;
    const { detail } = this.session;
    const at_s = this.stage.at_s;
    const step = detail.trajectory.steps[this.step];
    const step_s = this.timeline.stepTimes[this.step];
    const near = !this.stage.isPlaying || (at_s - step_s > -MARK_LEAD_S && at_s - step_s < MARK_STAY_S);
    screen.querySelectorAll(":scope > .overlay, :scope > .tags").forEach((element) => element.remove());
    if (step && near && !this.blink.isOn) screen.append(drawStep(step, screen.clientWidth, screen.clientHeight, placement(detail, this.step)));
    this.stage.root.querySelector(".stage-tags")?.remove();
    if (detail.media && detail.trajectory.steps.length) this.stage.root.append(h("div", { class: "stage-tags" }, stepCaption(step, this.step)));
  }

  // ---- moving

  goToStep(index) {
    const times = this.timeline.stepTimes;
    if (!times.length) return;
    const bounded = Math.min(times.length - 1, Math.max(0, index));
    this.stage.pause();
    this.stickyStep = bounded;
    this.stage.seekToMoment(times[bounded]);
  }

  moveStep(direction) {
    if (this.step === null && direction > 0) return this.goToStep(0);
    const at = this.step ?? 0;
    const begun = direction < 0 && this.stickyStep === null && this.stage.clock.indexAt(this.timeline.stepTimes[at] ?? 0) < this.stage.at;
    this.goToStep(begun ? at : at + direction);
  }

  // ---- marks

  /** Make an op and show its effect. */
  mark(fields) {
    return this.session?.push(fields) ?? null;
  }

  setOutcome(value) {
    this.mark({ type: "set_outcome", value });
  }

  labelStep(label) {
    if (this.step === null) return this.app.toasts.show("There is no step here yet: press j to go to the first.");
    return this.mark({ type: "label_step", step_index: this.step, label });
  }

  setFirstError() {
    if (this.step === null) return;
    const already = this.session.review.first_error?.step_index === this.step;
    this.mark({ type: "set_first_error", step_index: already ? null : this.step });
  }

  acceptJudge() {
    const judgement = judgeLanes(this.session?.detail.judgements).find((item) => item.outcome || item.spans?.length || item.step_labels?.length);
    if (!judgement) return this.app.toasts.show("No judge has an answer to accept here.");
    if (this.mark({ type: "accept", judgement_id: judgement.id })) this.app.toasts.show(`Took over what ${judgement.judge} said. z takes it back.`);
  }

  async undo() {
    const { session } = this;
    await this.historyRead();
    if (!session || session !== this.session) return;
    if (this.fixing && this.session.detail.alignment.corrections?.length) return this.correctTimes({ take_back: true });
    if (!session.undo()) this.app.toasts.show("Nothing to undo on this run.");
  }

  // ---- spans

  selectSpan(spanId) {
    if (this.timeline.selected === spanId) return;
    this.timeline.selected = spanId;
    if (this.stage.loop) this.stage.setLoop(null);
    if (this.session) this.timeline.render(this.session.review, { step: this.step, pending: this.pending, at_s: this.stage.at_s });
  }

  get selectedSpan() {
    return this.session?.review.spans.find((span) => span.span_id === this.timeline.selected) ?? null;
  }

  nextSpan() {
    const { spans } = this.session.review;
    if (!spans.length) return this.app.toasts.show("No span yet: [ begins one at the playhead, ] ends it.");
    const at = spans.findIndex((span) => span.span_id === this.timeline.selected);
    const span = spans[(at + 1) % spans.length];
    this.selectSpan(span.span_id);
    this.stage.pause();
    this.stage.seekTo(span.start_s);
  }

  /** Set one edge at the playhead: of the selected span, else of an open one, which is kept until its other edge comes. */
  setEdge(side, free) {
    if (!this.session) return;
    const at_s = this.edgeTime(free);
    if (!this.stage.isPlaying) this.stage.seekToMoment(at_s);
    const span = this.selectedSpan;
    if (span) return this.moveEdge(span, side, at_s);
    const pending = { ...this.pending, [side]: at_s };
    if (pending.start_s == null || pending.end_s == null) return this.setPending(pending);
    this.setPending(null);
    const [start_s, end_s] = this.ordered(pending.start_s, pending.end_s);
    return this.setSpan(null, start_s, end_s, null);
  }

  /** Where an edge set now comes to lie: at a step close by, unless `free`, else where the shown picture begins. */
  edgeTime(free) {
    const { at_s, picture_s } = this.stage;
    const near = free ? [] : this.timeline.stepTimes.filter((time_s) => Math.abs(time_s - at_s) <= KEY_SNAP_S);
    return near.length ? near.reduce((a, b) => (Math.abs(a - at_s) <= Math.abs(b - at_s) ? a : b)) : picture_s;
  }

  moveEdge(span, side, at_s) {
    const [start_s, end_s] = this.ordered(...(side === "start_s" ? [at_s, span.end_s] : [span.start_s, at_s]));
    this.setSpan(span.span_id, start_s, end_s, at_s);
  }

  /** Two edges in order and at least one picture apart. */
  ordered(a, b) {
    const { clock } = this.stage;
    const [start_s, end_s] = [Math.min(a, b), Math.max(a, b)];
    if (end_s > start_s) return [start_s, end_s];
    const index = clock.indexAt(start_s);
    if (index + 1 < clock.count) return [start_s, clock.timeOf(index + 1)];
    return index > 0 ? [clock.timeOf(index - 1), start_s] : [0, clock.duration_s];
  }

  setSpan(spanId, start_s, end_s, movedEdge_s) {
    const id = spanId ?? `s-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
    const reason = this.session.review.spans.find((span) => span.span_id === id)?.reason ?? "";
    this.timeline.selected = id;
    this.mark({ type: "put_span", span_id: id, start_s, end_s, reason });
    clearTimeout(this.replayTimer);
    if (movedEdge_s !== null && !this.stage.isPlaying) {
      this.stage.seekToMoment(movedEdge_s);
      this.replayTimer = setTimeout(() => this.stage.replayAround(movedEdge_s), REPLAY_DELAY_MS);
    }
  }

  setPending(pending) {
    this.pending = pending;
    keep(pendingKey(this.session), pending);
    this.render();
  }

  deleteSpan() {
    if (this.pending) return this.setPending(null);
    const span = this.selectedSpan;
    if (!span) return this.app.toasts.show("No span is selected: v selects the next one.");
    return this.mark({ type: "delete_span", span_id: span.span_id });
  }

  loopSpan() {
    if (this.stage.loop) return this.stage.setLoop(null);
    const span = this.selectedSpan ?? this.session?.review.spans[0];
    if (span) this.stage.setLoop(span);
    else this.app.toasts.show("No span to loop.");
  }

  async editSpanReason(spanId) {
    const span = this.session?.review.spans.find((item) => item.span_id === spanId);
    if (!span) return;
    const reason = await askText(this.app.host, { title: "Why does it deviate here?", value: span.reason, placeholder: "wrong row, wrong field, …" });
    if (reason !== null) this.mark({ type: "put_span", span_id: span.span_id, start_s: span.start_s, end_s: span.end_s, reason });
  }

  async why() {
    const span = this.selectedSpan;
    if (span) return this.editSpanReason(span.span_id);
    if (this.step === null) return;
    const { review } = this.session;
    const [step, label] = [this.step, review.step_labels[this.step]];
    const isFirstError = review.first_error?.step_index === step;
    const value = label ? label.reason : review.notes[step] ?? "";
    const text = await askText(this.app.host, { title: label ? `Why is step ${step + 1} ${label.label === "-" ? "wrong" : label.label === "+" ? "right" : "unsure"}?` : `Note on step ${step + 1}`, value });
    if (text === null) return;
    if (isFirstError) this.mark({ type: "set_first_error", step_index: step, reason: text });
    else if (label) this.mark({ type: "label_step", step_index: step, label: label.label, reason: text });
    else this.mark({ type: "set_note", step_index: step, text });
  }

  // ---- note

  /** What was typed into the note and is not an op yet; null when nothing was. */
  get draft() {
    return this.session ? kept(draftKey(this.session)) : null;
  }

  draftNote() {
    keep(draftKey(this.session), this.note.value);
    this.app.onDraft(true);
  }

  /** Make an op of what was typed, if anything was. */
  keepNote() {
    const text = this.draft;
    if (text === null) return;
    keep(draftKey(this.session), null);
    this.app.onDraft(false);
    if (text !== (this.session.review.notes.run ?? "")) this.mark({ type: "set_note", step_index: null, text });
  }

  noteKey(event) {
    if (event.key === "Escape" || (event.key === "Enter" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      event.stopPropagation();
      this.note.blur();
    }
  }

  // ---- panels

  toggleBlink() {
    if (this.blink.isOn) this.blink.hide();
    else if (this.session && this.step !== null) {
      this.stage.pause();
      this.blink.show(this.session.detail, this.step);
    } else this.app.toasts.show("There is no step here to compare: press j to go to the first.");
    this.drawOverlay();
  }

  toggleRaw() {
    if (this.drawer.kind === "raw") return this.drawer.close();
    if (this.session) this.drawer.open("raw", "What the judges said", rawReplies(this.session.detail, (at_s) => this.stage.seekTo(at_s)));
  }

  async toggleHistory() {
    if (this.drawer.kind === "history") return this.drawer.close();
    if (!this.session) return;
    this.drawer.open("history", "History", h("p", { class: "dim" }, "Loading…"));
    await this.refreshHistory();
  }

  /** Read the history again while it is open: an op has just been stored. */
  async refreshHistory() {
    if (this.drawer.kind !== "history" || !this.session) return;
    const list = await historyList(this.session.id).catch((error) => h("p", { class: "neg-text" }, `The history can’t be read: ${error.message}.`));
    if (this.drawer.kind === "history") this.drawer.open("history", "History", list);
  }

  closeSomething() {
    if (this.blink.isOn) return this.toggleBlink();
    if (this.drawer.kind) return this.drawer.close();
    if (this.stage.loop) return this.stage.setLoop(null);
    if (this.fixing) return this.setFixing(false);
    if (this.pending) return this.setPending(null);
    return this.selectSpan(null);
  }

  // ---- step times

  toggleFixing() {
    if (!this.timeline.stepTimes.length) return this.app.toasts.show("This run has no steps to place.");
    return this.setFixing(!this.fixing);
  }

  setFixing(on) {
    this.fixing = on;
    this.timeline.fixing = on;
    this.fixBar.hidden = !on;
    if (!on || !this.session) return;
    this.stickyStep = this.step ?? 0;
    const { alignment } = this.session.detail;
    this.fixBar.replaceChildren(h("span", {}, h("b", {}, "Correcting step times. "), `Drag a step on the lane, or stand where it begins and press `, badge("pinStep"), ` (this step) or `, badge("shiftSteps"), ` (all steps). Version ${alignment.version} by ${alignment.author}. `,
      alignment.corrections?.length > 0 && h("button", { class: "quiet", on: { click: () => this.correctTimes({ take_back: true }) } }, ["take back the last correction ", badge("undo")]), " ",
      h("button", { class: "quiet", on: { click: () => this.setFixing(false) } }, "done")));
    this.render();
  }

  pinStep(all) {
    if (!this.fixing || this.stickyStep === null) return this.app.toasts.show("Press t first to correct the times of steps.");
    const at_s = this.stage.at_s;
    const shift_s = at_s - this.timeline.stepTimes[this.stickyStep];
    if (Math.abs(shift_s) < 1e-6) return this.app.toasts.show("Step by pictures to where the action begins, then press p.");
    if (all) return this.correctTimes({ pins: [], shift_s });
    return this.correctTimes({ pins: [{ step_index: this.stickyStep, at_s }], shift_s: 0 });
  }

  async correctTimes(correction) {
    const { session } = this;
    try {
      const alignment = await call(`${runPath(session.id)}/alignment`, { method: "POST", body: { base_version: session.detail.alignment.version, pins: [], shift_s: 0, ...correction } });
      if (session !== this.session) return;
      session.detail.alignment = alignment;
      if (this.fixing) this.setFixing(true);
      this.render();
      this.frameChanged();
    } catch (error) {
      this.app.toasts.show(`The step times were not changed: ${error.message}.`, { kind: "bad" });
    }
  }

  // ---- done

  async submitAndNext() {
    if (!this.session) return;
    this.keepNote();
    if (this.session.review.status !== "submitted") {
      if (!this.session.review.outcome) return this.app.toasts.show("Give the outcome first: c correct, x incorrect, U can’t tell.");
      this.mark({ type: "submit" });
    }
    await this.app.openNext(1);
  }
}

async function readHistory(session) {
  try {
    const { ops } = await call(`${runPath(session.id)}/history?limit=300&reviewer=${encodeURIComponent(session.reviewer)}`);
    session.adoptHistory(ops);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    session.historyRead = null;
  }
}

/** Points also in pixels of the picture they were aimed at, for people. */
function withPixels(detail) {
  const { steps, observations } = detail.trajectory;
  for (const step of steps) {
    const picture = [observations[step.index], observations[step.index + 1], detail.media].find((item) => item?.width_px);
    if (picture) for (const action of step.actions) for (const point of action.points) point.px = [point.x * picture.width_px, point.y * picture.height_px];
  }
}

const pendingKey = ({ reviewer, id }) => `reviewer.pending.${reviewer}.${id}`;
const draftKey = ({ reviewer, id }) => `reviewer.note.${reviewer}.${id}`;
