// The import page: drag a file, a zip or a folder; everything is sent one file at a time, then read on the server.

import { call, reviewerName, url } from "./api.js";
import { h } from "./dom.js";
import { plural } from "./format.js";

const POLL_MS = 700;

export class Importer {
  /** `app`: {open(id), imported()}. */
  constructor(app) {
    this.app = app;
    this.files = [];
    this.build();
  }

  build() {
    this.task = h("textarea", { rows: "2", placeholder: "What was the agent asked to do? Given to every run of this import; leave it empty where runs bring their own.", "aria-label": "task text" });
    const input = (props) => h("input", { type: "file", class: "hidden-input", multiple: true, ...props, on: { change: (event) => { this.add([...event.target.files].map((file) => ({ path: file.webkitRelativePath || file.name, file }))); event.target.value = ""; } } });
    this.fileInput = input({});
    this.folderInput = input({ webkitdirectory: true });
    this.drop = h("div", {
      class: "drop", on: {
        dragover: (event) => { event.preventDefault(); this.drop.classList.add("over"); },
        dragleave: () => this.drop.classList.remove("over"),
        drop: (event) => this.dropped(event),
      },
    }, h("div", { class: "drop-big" }, "Drop a file, a zip or a folder here"), h("p", { class: "dim" }, "OSWorld results, a recording, a folder of screenshots, or an export of this tool. Originals are not changed."),
    h("div", {}, h("button", { class: "quiet bordered", on: { click: () => this.fileInput.click() } }, "Choose files"), " ", h("button", { class: "quiet bordered", on: { click: () => this.folderInput.click() } }, "Choose a folder")), this.fileInput, this.folderInput);
    this.list = h("div", { class: "upload-list" });
    this.start = h("button", { class: "primary", ".disabled": true, on: { click: () => this.upload() } }, "Import");
    this.progress = h("div", { class: "upload-progress", role: "status" });
    this.results = h("div", { class: "results" });
    this.root = h("div", { class: "importer" }, h("div", { class: "importer-inner" }, h("h1", {}, "Import trajectories"), this.drop, this.list, h("label", { class: "dim" }, "Task text", this.task), h("div", { class: "importer-actions" }, this.start, this.progress), this.results));
  }

  async dropped(event) {
    event.preventDefault();
    this.drop.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const found = [];
    for (const entry of entries) await collect(entry, "", found);
    this.add(found);
  }

  add(files) {
    const known = new Map(this.files.map((item) => [item.path, item]));
    for (const item of files) known.set(item.path, item);
    this.files = [...known.values()];
    this.showFiles();
  }

  showFiles() {
    const bytes = this.files.reduce((sum, { file }) => sum + file.size, 0);
    this.start.disabled = !this.files.length || this.busy;
    const roots = [...new Set(this.files.map(({ path }) => path.split("/")[0]))];
    this.list.replaceChildren(...(this.files.length ? [h("p", {}, h("b", {}, plural(this.files.length, "file")), ` · ${(bytes / 1e6).toFixed(1)} MB · ${roots.slice(0, 4).join(", ")}${roots.length > 4 ? `, and ${roots.length - 4} more` : ""} `, h("button", { class: "quiet", on: { click: () => { this.files = []; this.showFiles(); } } }, "remove"))] : []));
  }

  async upload() {
    this.busy = true;
    this.results.replaceChildren();
    this.showFiles();
    try {
      const { upload_id: id } = await call("api/uploads", { method: "POST", body: {} });
      const total = this.files.reduce((sum, { file }) => sum + file.size, 0) || 1;
      let sent = 0;
      for (const { path, file } of this.files) {
        await put(`api/uploads/${id}/files?path=${encodeURIComponent(path)}`, file, (part) => this.tell(`Sending ${path}`, (sent + part) / total));
        sent += file.size;
      }
      this.tell("Reading…", 1);
      const { job_id: jobId } = await call(`api/uploads/${id}/import`, { method: "POST", body: { task: this.task.value.trim() || null } });
      await this.follow(jobId);
      this.files = [];
      this.task.value = "";
    } catch (error) {
      this.progress.replaceChildren(h("span", { class: "neg-text" }, `Nothing was imported: ${error.message}. Your files are untouched; try again.`));
    } finally {
      this.busy = false;
      this.showFiles();
    }
  }

  tell(text, share) {
    this.progress.replaceChildren(h("progress", { ".max": 1, ".value": share }), h("span", {}, text));
  }

  async follow(jobId) {
    for (;;) {
      const { jobs } = await call(`api/jobs?ids=${jobId}`);
      const job = jobs[0];
      if (!job) throw new Error("the import job is gone");
      if (job.state === "done" || job.state === "failed" || job.state === "cancelled") {
        this.progress.replaceChildren(job.state === "done" ? "" : h("span", { class: "neg-text" }, job.message || "the import failed"));
        this.showResults(job.result?.records ?? []);
        this.app.imported();
        return;
      }
      this.tell(job.message || "Reading…", job.total ? job.done / job.total : 1);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  showResults(records) {
    const good = records.filter((record) => record.id);
    const bad = records.filter((record) => !record.id);
    this.results.replaceChildren(
      h("h2", {}, `${plural(good.length, "trajectory").replace("trajectorys", "trajectories")} imported${bad.length ? `, ${plural(bad.length, "file")} refused` : ""}`),
      ...good.map((record) => h("article", { class: "result" }, h("a", { href: `?id=${record.id}`, on: { click: (event) => { event.preventDefault(); this.app.open(record.id); } } }, record.task || record.source),
        h("div", { class: "dim" }, `${record.format} · ${plural(record.steps, "step")}${record.video ? ` · ${record.video.width}×${record.video.height}` : ""}`), problemList(record.problems))),
      ...bad.map((record) => h("article", { class: "result refused" }, h("b", {}, record.source.split("/").pop()), problemList(record.problems))));
  }
}

const problemList = (problems) => (problems?.length ? h("ul", {}, problems.map((problem) => h("li", {}, `${problem.file}${problem.line ? `:${problem.line}` : ""} ${problem.message}`))) : null);

/** Files under a dropped entry, with their paths from it. */
async function collect(entry, prefix, found) {
  const path = prefix + entry.name;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ path, file });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!batch.length) return;
    for (const child of batch) await collect(child, `${path}/`, found);
  }
}

/** Send one file with its progress: fetch has none for what goes up. */
function put(path, file, onPart) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", url(path));
    request.setRequestHeader("X-Reviewer", encodeURIComponent(reviewerName()));
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => onPart(event.loaded);
    request.onerror = () => reject(new Error("the connection broke"));
    request.onload = () => {
      if (request.status < 300) return resolve();
      let detail = null;
      try { detail = JSON.parse(request.responseText).detail; } catch { /* not JSON */ }
      return reject(new Error(typeof detail === "string" ? detail : `the server answered ${request.status}`));
    };
    request.send(file);
  });
}
