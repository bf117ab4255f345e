// What this browser remembers. Storage may be full or forbidden: then things are kept only as long as the page lives.

/** Keep `value` as JSON under `key`, or forget the key for null. Answers whether it is really kept. */
export function keep(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** What was kept under `key`, or null. */
export function kept(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}

/** Everything kept under keys that begin with `prefix`. */
export function keptUnder(prefix) {
  try {
    const keys = Array.from({ length: localStorage.length }, (_, index) => localStorage.key(index));
    return keys.filter((key) => key.startsWith(prefix)).map(kept).filter((value) => value !== null);
  } catch {
    return [];
  }
}
