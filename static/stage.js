// The video: exact seeking, stepping by picture, playing with idle stretches left out, a short replay around an edge.

import { url } from "./api.js";
import { Clock } from "./clock.js";
import { clamp, h } from "./dom.js";
import { keep, kept } from "./store.js";

const SPEEDS = [0.25, 0.5, 1, 1.5, 2, 4, 8];
const REPLAY_S = 1;

export class Stage extends EventTarget {
  /** Fires `frame` whenever another picture is shown or intended, `state` on play, pause and speed, `first` at the first picture. */
  constructor() {
    super();
    this.screen = h("div", { class: "screen" });
    this.message = h("div", { class: "stage-message", hidden: true });
    this.root = h("div", { class: "stage" }, this.screen, this.message);
    this.video = null;
    this.ready = new Map();
    this.clock = new Clock({});
    this.at = 0;
    this.cursor_s = 0;
    this.shown = -1;
    this.hasShown = false;
    this.target = null;
    this.seeking = false;
    this.speed = 1;
    this.skipIdle = kept("reviewer.skip-idle") !== false;
    this.idle = [];
    this.replayEnd = null;
    this.loop = null;
    new ResizeObserver(() => this.fit()).observe(this.root);
  }

  /** Seconds of the video at which the person is: where the shown picture begins, or a moment of a step within it. */
  get at_s() {
    return this.cursor_s;
  }

  /** Where the picture that the person is at begins. */
  get picture_s() {
    return this.clock.timeOf(this.at);
  }

  get isPlaying() {
    return Boolean(this.video && !this.video.paused);
  }

  /** Load a video ahead of its use. Only the newest few are kept. */
  preload(media) {
    if (!media?.url || this.ready.has(media.media_id)) return;
    const video = makeVideo(url(media.url));
    this.ready.set(media.media_id, video);
    for (const id of [...this.ready.keys()].slice(0, -2)) {
      unload(this.ready.get(id));
      this.ready.delete(id);
    }
  }

  open(media, idle, at_s = 0) {
    this.close();
    this.media = media;
    this.idle = idle ?? [];
    this.message.hidden = true;
    this.clock = new Clock(media ?? {});
    if (!media) {
      this.tell("This trajectory has no pictures that can be shown. The problems listed beside it say why.");
      return;
    }
    this.video = this.ready.get(media.media_id) ?? makeVideo(url(media.url));
    this.ready.delete(media.media_id);
    this.listen(this.video);
    this.screen.prepend(this.video);
    this.fit();
    this.seeking = false;
    this.seek(this.clock.indexAt(at_s), at_s);
  }

  close() {
    if (!this.video) return;
    this.listening.abort();
    unload(this.video);
    this.video.remove();
    this.video = null;
    Object.assign(this, { target: null, seeking: false, shown: -1, hasShown: false, at: 0, cursor_s: 0, replayEnd: null, loop: null });
  }

  tell(text) {
    this.message.textContent = text;
    this.message.hidden = false;
  }

  listen(video) {
    this.listening = new AbortController();
    const { signal } = this.listening;
    const on = (type, handler) => video.addEventListener(type, handler, { signal });
    on("seeked", () => this.seekDone());
    on("play", () => this.emit("state"));
    on("pause", () => this.emit("state"));
    on("ended", () => this.emit("state"));
    on("loadedmetadata", () => { video.playbackRate = this.speed; this.fit(); });
    on("error", () => this.tell(`The browser can’t play this video (${video.error?.message || "unknown reason"}).`));
    const onFrame = (_now, { mediaTime }) => {
      if (signal.aborted) return;
      video.requestVideoFrameCallback(onFrame);
      this.presented(mediaTime);
    };
    video.requestVideoFrameCallback(onFrame);
  }

  presented(mediaTime) {
    const first = !this.hasShown;
    this.hasShown = true;
    this.shown = this.clock.indexAt(mediaTime);
    if (this.isPlaying) {
      this.stand(this.shown);
      this.whilePlaying(mediaTime);
    }
    this.emit("frame");
    if (first) this.emit("first");
  }

  whilePlaying(now_s) {
    if (this.replayEnd !== null && now_s >= this.replayEnd.until_s) {
      const { back_s } = this.replayEnd;
      this.pause();
      this.seekToMoment(back_s);
    } else if (this.loop && (now_s >= this.loop.end_s || now_s < this.loop.start_s - 0.5)) {
      this.seekWhilePlaying(this.loop.start_s);
    } else if (this.skipIdle && !this.loop && this.replayEnd === null) {
      const still = this.idle.find((span) => now_s >= span.start_s + 0.3 && now_s < span.end_s - 0.3);
      if (still) this.seekWhilePlaying(still.end_s - 0.25);
    }
  }

  seekWhilePlaying(at_s) {
    this.video.currentTime = this.clock.aim(this.clock.indexAt(at_s));
  }

  /** Be at a picture, or at a moment of its time. */
  stand(index, at_s = null) {
    this.at = clamp(index, 0, this.clock.count - 1);
    this.cursor_s = at_s !== null && this.clock.indexAt(at_s) === this.at ? Math.max(0, at_s) : this.picture_s;
  }

  /** Go to a picture, or to a moment of its time. While one seek runs only the newest target is remembered. */
  seek(index, at_s = null) {
    if (!this.video) return;
    this.stand(index, at_s);
    this.target = this.at;
    this.emit("frame");
    this.pump();
  }

  /** Go to the picture shown at a time. */
  seekTo(at_s) {
    this.seek(this.clock.indexAt(at_s));
  }

  /** Go to a moment itself, such as a step's, which may lie within the time of a picture. */
  seekToMoment(at_s) {
    this.seek(this.clock.indexAt(at_s), at_s);
  }

  pump() {
    if (this.seeking || this.target === null) return;
    const aim = this.clock.aim(this.target);
    this.target = null;
    if (Math.abs(this.video.currentTime - aim) < 1e-6) return;
    this.seeking = true;
    this.video.currentTime = aim;
  }

  seekDone() {
    this.seeking = false;
    this.pump();
    if (!this.seeking) this.shown = this.clock.indexAt(this.video.currentTime);
    this.emit("frame");
  }

  /** Whether the picture that the person is at is the one on the screen. */
  get isSettled() {
    return !this.seeking && this.shown === this.at;
  }

  /** Step by pictures from where the person is, not from what the decoder has shown so far. */
  stepFrames(count) {
    this.pause();
    this.seek(this.at + count);
  }

  play() {
    if (!this.video) return;
    if (this.at >= this.clock.count - 1 && !this.loop) this.seek(0);
    this.video.playbackRate = this.speed;
    this.video.play().catch((error) => { if (error.name !== "AbortError") this.tell(`Playing failed: ${error.message}`); });
  }

  pause() {
    this.replayEnd = null;
    if (this.isPlaying) {
      this.video.pause();
      this.stand(Math.max(0, this.shown));
    }
  }

  toggle() {
    if (this.isPlaying) this.pause();
    else this.play();
  }

  /** Play one second around an edge that was just moved, then stand on the edge again. */
  replayAround(edge_s) {
    this.pause();
    this.seek(this.clock.indexAt(Math.max(0, edge_s - REPLAY_S / 2)));
    this.replayEnd = { until_s: Math.min(edge_s + REPLAY_S / 2, this.clock.timeOf(this.clock.count - 1) - 1e-3), back_s: edge_s };
    this.video.playbackRate = 1;
    this.video.play().catch(() => {});
  }

  setLoop(span) {
    this.loop = span;
    if (span) {
      this.seekTo(span.start_s);
      this.play();
    }
    this.emit("state");
  }

  changeSpeed(direction) {
    const place = SPEEDS.indexOf(this.speed);
    this.speed = SPEEDS[clamp(place + direction, 0, SPEEDS.length - 1)];
    if (this.video) this.video.playbackRate = this.speed;
    this.emit("state");
  }

  toggleSkipIdle() {
    this.skipIdle = !this.skipIdle;
    keep("reviewer.skip-idle", this.skipIdle);
    this.emit("state");
  }

  /** Fit the picture into the stage; the overlay covers exactly the picture. */
  fit() {
    if (!this.media) return;
    const { clientWidth, clientHeight } = this.root;
    const { width_px: width, height_px: height } = this.media;
    const scale = Math.min((clientWidth - 2) / width, (clientHeight - 2) / height, Math.max(1, 320 / Math.max(width, height)) * 2);
    this.screen.style.width = `${Math.max(1, Math.floor(width * scale))}px`;
    this.screen.style.height = `${Math.max(1, Math.floor(height * scale))}px`;
    this.emit("fit");
  }

  emit(type) {
    this.dispatchEvent(new Event(type));
  }
}

function makeVideo(address) {
  return h("video", { ".src": address, ".muted": true, preload: "auto", playsinline: true, "disablepictureinpicture": true, "aria-label": "recording of the run" });
}

function unload(video) {
  video.pause();
  video.removeAttribute("src");
  video.load();
}
