// The page: worklist, review and import on one screen, so that opening the next run is not a page load.

import { call, reviewerName, runPath, setReviewerName } from "./api.js";
import { ask, askText, settingLine, Toasts } from "./dialogs.js";
import { h } from "./dom.js";
import { plural, timecode } from "./format.js";
import { Importer } from "./importer.js";
import { keySheet, listen } from "./keys.js";
import { Outbox } from "./outbox.js";
import { changesOf } from "./review.js";
import { ReviewPage } from "./reviewpage.js";
import { Worklist } from "./worklist.js";

/** Build the app inside `element`, apart from the host page's styles. */
export async function mount(element, { stylesheet }) {
  const shadow = element.shadowRoot ?? element.attachShadow({ mode: "open" });
  const app = new App();
  const style = h("link", { rel: "stylesheet", href: stylesheet });
  const styled = new Promise((resolve) => { style.onload = resolve; style.onerror = resolve; });
  shadow.replaceChildren(style, app.root);
  app.root.style.visibility = "hidden";
  await styled;
  app.root.style.visibility = "";
  await app.start();
}

class App {
  constructor() {
    this.revs = new Map();
    this.prefetched = new Map();
    this.toasts = new Toasts();
    this.outbox = new Outbox({
      baseRev: (id, reviewer) => this.revs.get(`${reviewer} ${id}`) ?? null,
      onAnswer: (entry, answer) => this.answered(entry, answer),
      onConflict: (entry, body) => this.conflict(entry, body),
      onDropped: (entry) => this.dropped(entry),
      onRefused: (entry, error) => this.refused(entry, error),
      onNotKept: () => this.toasts.show("This browser’s storage is full: marks are lost if the window closes before they are sent.", { kind: "bad" }),
      onState: () => this.showSaved(),
    });
    this.channel = new BroadcastChannel("reviewer.reviews");
    this.channel.onmessage = ({ data }) => this.otherWindow(data);
    this.worklist = new Worklist({ open: (id) => this.open(id), showImport: () => this.show("import"), onLoaded: () => this.showPlace() });
    this.importer = new Importer({ open: (id) => this.open(id), imported: () => this.worklist.load() });
    this.build();
    this.page = new ReviewPage({
      outbox: this.outbox, toasts: this.toasts, host: this.root,
      detail: (id, reviewer) => this.detail(id, reviewer),
      openNext: (direction) => this.openNext(direction),
      onOpen: (session) => this.opened(session),
      onFirstPicture: () => this.firstPicture(),
      onChange: (session) => this.reviewChanged(session),
      onDraft: (isDraft) => { this.isDraft = isDraft; this.showSaved(); },
      onPlace: () => this.keepPlace(),
    });
    this.views = { worklist: this.worklist.root, review: this.page.root, import: this.importer.root };
    this.body.append(...Object.values(this.views));
    this.bindKeys();
    addEventListener("popstate", () => this.route());
  }

  build() {
    const tab = (name, text) => h("button", { data: { view: name }, on: { click: () => this.show(name) } }, text);
    this.nav = h("nav", { class: "nav" }, tab("worklist", "Worklist"), tab("review", "Review"), tab("import", "Import"));
    this.task = h("div", { class: "task" }, h("b", {}), h("span", {}));
    this.place = h("span", { class: "dim num place" });
    this.saved = h("button", { class: "saved", role: "status", on: { click: () => this.outbox.pump() } });
    this.state = h("span", { class: "chip plain", hidden: true });
    this.who = h("button", { class: "chip plain who", title: "your name goes with every mark: click to change it", on: { click: () => this.changeName() } });
    this.body = h("div", { class: "body" });
    this.sheet = h("dialog", { class: "dialog sheet", on: { click: (event) => { if (event.target === this.sheet) this.sheet.close(); }, keydown: (event) => { if (event.key === "?") { event.stopPropagation(); this.sheet.close(); } } } }, h("h2", { tabindex: "-1", autofocus: true }, "Keys"), keySheet(), h("div", { class: "dialog-buttons" }, h("button", { class: "primary", on: { click: () => this.sheet.close() } }, "Close")));
    this.root = h("div", { class: "app" },
      h("header", { class: "top" }, h("b", { class: "brand" }, "Trajectory Reviewer"), this.nav, this.task, this.state, this.place, this.saved, this.who, h("button", { class: "quiet round", "aria-label": "keys", on: { click: () => this.toggleSheet() } }, "?")),
      this.body, this.toasts.root, this.sheet);
    this.root.addEventListener("click", leaveButton);
    this.task.addEventListener("click", () => this.task.classList.toggle("whole"));
    this.followTheme();
  }

  followTheme() {
    const wanted = new URLSearchParams(location.search).get("__theme");
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const set = () => { this.root.dataset.theme = wanted === "dark" || wanted === "light" ? wanted : dark.matches ? "dark" : "light"; };
    dark.addEventListener("change", set);
    set();
  }

  async start() {
    this.showName();
    this.showSaved();
    const wanted = new URLSearchParams(location.search).get("id");
    const list = this.worklist.load();
    await this.route();
    if (!wanted) await list;
    this.outbox.pump();
  }

  // ---- places

  async route() {
    const query = new URLSearchParams(location.search);
    const id = query.get("id");
    if (!id) return this.show(query.get("view") === "import" ? "import" : "worklist", { push: false });
    const step = Number.parseInt(query.get("step"), 10);
    const at_s = Number.parseFloat(query.get("t"));
    const place = { step: Number.isFinite(step) ? step - 1 : null, at_s: Number.isFinite(at_s) ? at_s : null };
    if (this.page.session?.id !== id) return this.open(id, { ...place, push: false });
    this.page.goTo(place);
    return this.show("review", { push: false });
  }

  show(view, { push = true } = {}) {
    if (view === "review" && !this.page.session) return this.worklist.openCursor();
    this.view = view;
    this.root.dataset.view = view;
    for (const [name, root] of Object.entries(this.views)) root.hidden = name !== view;
    for (const button of this.nav.children) button.classList.toggle("on", button.dataset.view === view);
    const open = view === "review";
    this.task.hidden = this.place.hidden = !open;
    this.state.hidden = !open || !this.state.textContent;
    if (!open) {
      this.page.stage.pause();
      this.page.keepNote();
    }
    if (push && !open) history.pushState(null, "", view === "worklist" ? this.address({}) : this.address({ view }));
    if (open) this.keepPlace();
    if (view === "worklist") this.worklist.refreshSoon();
    return undefined;
  }

  address(parameters) {
    const query = new URLSearchParams(parameters);
    const theme = new URLSearchParams(location.search).get("__theme");
    if (theme) query.set("__theme", theme);
    return query.size ? `?${query}` : location.pathname;
  }

  async open(id, { step = null, at_s = null, push = true } = {}) {
    try {
      await this.page.open(id, { step, at_s });
    } catch (error) {
      this.toasts.show(error.status === 404 ? `There is no trajectory ${id} here.` : `This run can’t be opened: ${error.message}.`, { kind: "bad" });
      if (!this.page.session) this.show("worklist", { push: false });
      return;
    }
    if (push) history.pushState(null, "", this.address({ id }));
    this.view = null;
    this.show("review", { push: false });
    this.page.stage.fit();
  }

  async openNext(direction) {
    const next = this.worklist.neighbour(this.page.session?.id, direction);
    if (next) return this.open(next);
    this.toasts.show(direction > 0 ? "That was the last run of this list." : "This is the first run of this list.");
    if (direction > 0) this.show("worklist");
    return undefined;
  }

  keepPlace() {
    if (this.view !== "review" || !this.page.session) return;
    clearTimeout(this.placeTimer);
    this.placeTimer = setTimeout(() => {
      const { session, step, stage } = this.page;
      if (this.view !== "review" || !session) return;
      history.replaceState(null, "", this.address({ id: session.id, ...(step === null ? {} : { step: step + 1 }), t: urlTime(stage.at_s) }));
    }, 200);
  }

  // ---- data

  async detail(id, reviewer) {
    const key = `${reviewer} ${id}`;
    const ahead = this.prefetched.get(key);
    this.prefetched.delete(key);
    const detail = structuredClone(await (ahead ?? this.fetchDetail(id, reviewer)));
    const known = this.revs.get(key);
    if (known !== undefined && detail.review.rev < known) return this.fetchDetail(id, reviewer);
    this.revs.set(key, detail.review.rev);
    return detail;
  }

  fetchDetail(id, reviewer) {
    return call(runPath(id), { reviewer });
  }

  /** Have the next run's data and the head of its video before they are asked for. */
  firstPicture() {
    this.root.dispatchEvent(new CustomEvent("reviewer-first-picture", { bubbles: true, composed: true, detail: { id: this.page.session?.id } }));
    const next = this.page.session && this.worklist.neighbour(this.page.session.id, 1);
    if (!next) return;
    const key = `${reviewerName()} ${next}`;
    if (this.prefetched.has(key)) return;
    const detail = this.fetchDetail(next, reviewerName());
    detail.then(({ media }) => this.page.stage.preload(media), () => this.prefetched.delete(key));
    this.prefetched.clear();
    this.prefetched.set(key, detail);
  }

  opened(session) {
    const { trajectory, media } = session.detail;
    const [title, about] = this.task.children;
    title.textContent = trajectory.task || "(no task text)";
    title.title = trajectory.task;
    about.textContent = [trajectory.agent, trajectory.platform, plural(trajectory.steps.length, "step"), media && timecode(media.duration_s, 0), trajectory.recorded_at && `recorded ${trajectory.recorded_at.replace("T", " ").slice(0, 16)}`].filter(Boolean).join(" · ");
    this.root.dataset.trajectory = session.id;
    this.showPlace();
  }

  showPlace() {
    const { place, total } = this.worklist.placeOf(this.page.session?.id);
    this.place.textContent = place ? `${place} / ${total}` : "";
  }

  reviewChanged(session) {
    const { review } = session;
    this.state.textContent = { submitted: "submitted", in_progress: "in progress" }[review.status] ?? "";
    this.state.className = `chip ${review.status === "submitted" ? "pos" : "plain"}`;
    this.state.hidden = this.view !== "review" || !this.state.textContent;
    this.worklist.reviewChanged(session.id, review);
    this.showPlace();
  }

  // ---- saving

  showSaved() {
    const waiting = this.outbox.pending().length;
    this.root.dataset.unsaved = waiting;
    const state = this.outbox.isOffline && waiting ? "offline" : waiting || this.isDraft ? "busy" : "yes";
    this.saved.className = `saved ${state}`;
    this.saved.textContent = { offline: `offline · ${waiting} kept here`, busy: waiting ? "saving…" : "note not sent yet", yes: "✓ saved" }[state];
    this.saved.title = this.outbox.isOffline ? "The server can’t be reached. Your marks are kept in this browser and sent as soon as it answers; click to try now." : "";
  }

  answered(entry, answer) {
    this.revs.set(`${entry.reviewer} ${entry.trajectory_id}`, answer.rev);
    if (this.isOpen(entry)) {
      this.page.session.accept(answer.review);
      this.page.refreshHistory();
    }
    this.channel.postMessage({ trajectory_id: entry.trajectory_id, reviewer: entry.reviewer, review: answer.review });
  }

  isOpen({ trajectory_id: id, reviewer }) {
    return this.page.session?.id === id && this.page.session.reviewer === reviewer;
  }

  otherWindow({ trajectory_id: id, reviewer, review }) {
    const key = `${reviewer} ${id}`;
    if ((this.revs.get(key) ?? -1) >= review.rev) return;
    this.revs.set(key, review.rev);
    if (this.isOpen({ trajectory_id: id, reviewer })) {
      this.page.session.accept(review);
      this.toasts.show("Updated from your other window.");
    } else this.worklist.reviewChanged(id, review);
  }

  /** The review moved on elsewhere. Marks on other fields go on top of it; on the same field the person decides. */
  async conflict(entry, body) {
    this.revs.set(`${entry.reviewer} ${entry.trajectory_id}`, body.rev);
    const open = this.isOpen(entry);
    if (open) this.page.session.accept(body.review);
    const known = open ? this.page.session.known : {};
    const mine = changesOf(entry.op, body.review, known).filter((change) => change.field !== "status");
    const theirs = body.ops_since.flatMap((op) => op.changes);
    const clash = mine.filter((change) => theirs.some((other) => other.field === change.field));
    if (!clash.length) return true;
    const task = await this.taskOf(entry);
    const choice = await ask(this.root, {
      title: "Changed in two places",
      body: h("div", { class: "clash" }, h("p", {}, "This run was also changed in another window or on another machine under your name:"), h("p", { class: "clash-task" }, task),
        h("h3", {}, "There"), theirs.filter((other) => clash.some((change) => change.field === other.field)).map(settingLine),
        h("h3", {}, "Here"), clash.map(settingLine)),
      buttons: [{ text: "Keep what is there", value: "theirs" }, { text: "Set mine", value: "mine", primary: true }],
    });
    return choice === "mine";
  }

  async taskOf({ trajectory_id: id, reviewer }) {
    if (this.page.session?.id === id) return this.page.session.detail.trajectory.task;
    return (await this.fetchDetail(id, reviewer).catch(() => null))?.trajectory.task ?? id;
  }

  /** A mark was given up for what is stored. A submit that waited behind it no longer means what it meant: it goes too. */
  dropped(entry) {
    const submit = this.outbox.pending(entry.trajectory_id).find((other) => other.op.type === "submit" && other.reviewer === entry.reviewer);
    if (submit) {
      this.outbox.drop(submit);
      this.toasts.show("That run is not submitted: look at it again.", { kind: "bad", stay_ms: 9000 });
    }
    if (this.isOpen(entry)) for (const gone of [entry, submit]) if (gone) this.page.session.forget(gone.op.op_id);
  }

  refused(entry, error) {
    if (this.isOpen(entry)) this.page.session.forget(entry.op.op_id);
    this.toasts.show(`A mark was refused: ${error.message}`, { kind: "bad", stay_ms: 9000 });
  }

  async changeName() {
    const name = await askText(this.root, { title: "Your name", value: reviewerName(), hint: "It goes with every mark. Marks made under another name stay theirs." });
    if (!name) return;
    setReviewerName(name.slice(0, 80));
    this.showName();
    this.prefetched.clear();
    this.worklist.load({ quiet: true });
    if (this.page.session) this.open(this.page.session.id, { step: this.page.step, push: false });
  }

  showName() {
    this.who.textContent = reviewerName();
  }

  // ---- keys

  toggleSheet() {
    if (this.sheet.open) this.sheet.close();
    else this.sheet.showModal();
  }

  bindKeys() {
    const { page, worklist } = this;
    const open = (action) => (event) => page.session && action(event);
    listen({
      play: open(() => page.stage.toggle()), nextStep: open(() => page.moveStep(1)), prevStep: open(() => page.moveStep(-1)),
      nextFrame: open(() => page.stage.stepFrames(1)), prevFrame: open(() => page.stage.stepFrames(-1)),
      firstStep: open(() => page.goToStep(0)), lastStep: open(() => page.goToStep(Infinity)),
      slower: open(() => page.stage.changeSpeed(-1)), faster: open(() => page.stage.changeSpeed(1)), skipIdle: open(() => page.stage.toggleSkipIdle()),
      blink: open(() => page.toggleBlink()), raw: open(() => page.toggleRaw()), history: open(() => page.toggleHistory()),
      spanIn: open((event) => page.setEdge("start_s", event.altKey)), spanOut: open((event) => page.setEdge("end_s", event.altKey)),
      nextSpan: open(() => page.nextSpan()), loopSpan: open(() => page.loopSpan()), deleteSpan: open(() => page.deleteSpan()), why: open(() => page.why()),
      labelPlus: open(() => page.labelStep("+")), labelMinus: open(() => page.labelStep("-")), labelUnsure: open(() => page.labelStep("unsure")), labelClear: open(() => page.labelStep(null)),
      firstError: open(() => page.setFirstError()), correct: open(() => page.setOutcome("correct")), incorrect: open(() => page.setOutcome("incorrect")), cantTell: open(() => page.setOutcome("unsure")),
      accept: open(() => page.acceptJudge()), note: open(() => page.note.focus()), undo: open(() => page.undo()), submit: open(() => page.submitAndNext()),
      fixTimes: open(() => page.toggleFixing()), pinStep: open(() => page.pinStep(false)), shiftSteps: open(() => page.pinStep(true)),
      nextRun: () => this.openNext(1), prevRun: () => this.openNext(-1),
      nextRow: () => worklist.move(1), prevRow: () => worklist.move(-1), openRow: () => worklist.openCursor(), nextPage: () => worklist.turn(1), prevPage: () => worklist.turn(-1), search: () => worklist.search.focus(),
      worklist: () => this.show(this.view === "worklist" ? "review" : "worklist"), help: () => this.toggleSheet(),
      close: () => { if (this.view === "review") page.closeSomething(); },
    }, () => (this.root.querySelector("dialog[open]") ? null : this.view));
  }
}

/** After a click with the mouse a button does not keep the keys to itself. */
function leaveButton(event) {
  if (event.detail > 0) event.composedPath()[0].closest?.("button")?.blur();
}

/** Seconds for an address: rounded up, so that reading it back is never in the picture before. */
const urlTime = (seconds) => (Math.ceil(seconds * 1000 - 1e-6) / 1000).toFixed(3);
