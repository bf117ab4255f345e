// The video clock: which picture is shown at a time, and where to aim so that the browser shows it.

/** Presentation times of a video. Built from `media.clock`: `{num, den, count}` or `{pts_s}`. */
export class Clock {
  constructor({ clock, duration_s: duration }) {
    this.duration_s = duration ?? 0;
    this.pts_s = clock?.pts_s ?? null;
    this.count = this.pts_s ? this.pts_s.length : clock?.count ?? 1;
    this.period_s = this.pts_s ? null : (clock?.num ?? 1) / (clock?.den ?? 1);
  }

  /** Seconds at which picture `index` appears. */
  timeOf(index) {
    const bounded = Math.min(this.count - 1, Math.max(0, index));
    return this.pts_s ? this.pts_s[bounded] : bounded * this.period_s;
  }

  /** Index of the picture shown at `seconds`. A microsecond is forgiven: browsers round media times. */
  indexAt(seconds) {
    const at = seconds + 1e-5;
    if (!this.pts_s) return Math.min(this.count - 1, Math.max(0, Math.floor(at / this.period_s)));
    let low = 0;
    let high = this.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.pts_s[middle] <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Seconds well inside picture `index`: a seek to its edge may show the neighbour. */
  aim(index) {
    const start = this.timeOf(index);
    const end = index + 1 < this.count ? this.timeOf(index + 1) : Math.max(this.duration_s, start + 0.002);
    return (start + end) / 2;
  }

  /** The time of the picture shown at `seconds`: every stored edge is one. */
  snap(seconds) {
    return this.timeOf(this.indexAt(seconds));
  }
}
